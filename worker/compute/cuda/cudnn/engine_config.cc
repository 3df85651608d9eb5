#include "worker/compute/cuda/cudnn/engine_config.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shoal::cuda {

std::string EngineConfigText(const EngineConfig& config) {
  std::string text = absl::StrCat(config.engine);
  for (const EngineConfig::Knob& knob : config.knobs) {
    absl::StrAppend(&text, " ", knob.type, "=", knob.value);
  }
  return text;
}

std::optional<EngineConfig> ParseEngineConfig(std::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(std::string(text), ' ');
  EngineConfig config;
  if (!absl::SimpleAtoi(words[0], &config.engine)) return std::nullopt;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::vector<std::string> sides = absl::StrSplit(words[i], '=');
    EngineConfig::Knob knob;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &knob.type) ||
        !absl::SimpleAtoi(sides[1], &knob.value)) {
      return std::nullopt;
    }
    config.knobs.push_back(knob);
  }
  return config;
}

bool MayCompute(const EngineNotes& notes, ComputeDtype type, const ConvolutionDemands& demands) {
  if (notes.converts_inputs_down || notes.adds_in_less_than_float32) return false;
  if (notes.tensor_cores && type == ComputeDtype::kFloat32 && !demands.tf32) return false;
  return !(notes.nondeterministic && demands.deterministic);
}

absl::Status NoEngine(const std::string& what, const std::vector<absl::Status>& failures) {
  for (const absl::Status& failure : failures) {
    if (absl::IsUnavailable(failure) || absl::IsFailedPrecondition(failure)) return failure;
  }
  const std::string last =
      failures.empty() ? "it names none" : std::string(failures.back().message());
  return absl::UnimplementedError(absl::StrCat(what, ": ", last));
}

}  // namespace shoal::cuda
