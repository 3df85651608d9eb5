#include "worker/compute/cuda/cudnn/engine_config.h"

#include "absl/strings/str_cat.h"

namespace shoal::cuda {

std::string EngineConfigText(const EngineConfig& config) {
  std::string text = absl::StrCat(config.engine);
  for (const EngineConfig::Knob& knob : config.knobs) {
    absl::StrAppend(&text, " ", knob.type, "=", knob.value);
  }
  return text;
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
