#include "common/model/keras/options/dtype_config.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

constexpr int64_t kMax = 1 << 24;
constexpr std::pair<const char*, WholeNumbers> kWholeNumbers[] = {
    {"int8", {-128, 127}},    {"int16", {-32768, 32767}}, {"int32", {-kMax, kMax}},
    {"int64", {-kMax, kMax}}, {"uint8", {0, 255}},        {"uint16", {0, 65535}},
    {"uint32", {0, kMax}},    {"uint64", {0, kMax}},
};

// Returns the name in a policy object. Keras 2 calls its class Policy, Keras 3.0 FloatDTypePolicy.
absl::StatusOr<JsonNode> NameOf(const JsonNode& dtype) {
  if (!dtype.is_object()) return dtype;
  SHOAL_RETURN_IF_ERROR(dtype.ExpectKerasOwn());
  const JsonNode class_json = dtype["class_name"];
  SHOAL_ASSIGN_OR_RETURN(const std::string class_name, class_json.String());
  for (const char* known : {"DTypePolicy", "FloatDTypePolicy", "Policy"}) {
    if (class_name == known) return dtype["config"]["name"];
  }
  return class_json.Unimplemented(
      absl::StrCat("Shoal has no policy ", class_json.Text(),
                   ": weights are not quantized, and a policy is of one layer; use "
                   "\"DTypePolicy\" with the name float32, mixed_bfloat16 or mixed_float16"));
}

absl::Status Lacking(const JsonNode& name) {
  return name.Unimplemented(
      absl::StrCat("variables are float32 here, under ", name.Text(),
                   " they are not; use \"float32\", or \"mixed_bfloat16\" or \"mixed_float16\", "
                   "whose variables are float32 (keras.config.set_dtype_policy)"));
}

}  // namespace

bool HaveRoom(const WholeNumbers& numbers) { return numbers.min == -kMax; }

absl::StatusOr<ComputeDtype> ReadDtypePolicy(const JsonNode& dtype) {
  SHOAL_ASSIGN_OR_RETURN(const JsonNode name, NameOf(dtype));
  SHOAL_ASSIGN_OR_RETURN(const std::string text, name.String("float32"));
  if (text == "float32") return ComputeDtype::kFloat32;
  if (text == "mixed_bfloat16") return ComputeDtype::kBfloat16;
  if (text == "mixed_float16") return ComputeDtype::kFloat16;
  return Lacking(name);
}

absl::StatusOr<std::optional<WholeNumbers>> ReadInputDtype(const JsonNode& dtype) {
  SHOAL_ASSIGN_OR_RETURN(const JsonNode name, NameOf(dtype));
  SHOAL_ASSIGN_OR_RETURN(const std::string text, name.String("float32"));
  // The first layer of a Sequential model may define its input, with its own compute dtype.
  for (const char* known : {"float32", "bfloat16", "float16"}) {
    if (text == known) return std::nullopt;
  }
  for (const auto& [known, numbers] : kWholeNumbers) {
    if (text == known) return numbers;
  }
  return name.Unimplemented(
      absl::StrCat("Shoal has no inputs of ", name.Text(),
                   "; use \"float32\", or a dtype of whole numbers, such as \"int32\""));
}

}  // namespace shoal
