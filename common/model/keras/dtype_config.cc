#include "common/model/keras/dtype_config.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

JsonNode NameOf(const JsonNode& dtype) {
  return dtype.is_object() ? dtype["config"]["name"] : dtype;
}

}  // namespace

absl::Status CheckDtype(const JsonNode& dtype) {
  const JsonNode name = NameOf(dtype);
  SHOAL_ASSIGN_OR_RETURN(const std::string text, name.String("float32"));
  if (text == "float32") return absl::OkStatus();
  if (absl::StartsWith(text, "mixed_")) {
    return name.Unimplemented(
        absl::StrCat("Shoal computes in float32 and has no mixed precision, got ", name.Text(),
                     "; write the model under keras.config.set_dtype_policy(\"float32\"): its "
                     "variables are float32 either way"));
  }
  return name.Unimplemented(
      absl::StrCat("Shoal has no ", name.Text(), " layers; \"float32\" would be right"));
}

absl::Status CheckInputDtype(const JsonNode& dtype) {
  const JsonNode name = NameOf(dtype);
  SHOAL_ASSIGN_OR_RETURN(const std::string text, name.String("float32"));
  for (const char* whole :
       {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}) {
    if (text == whole) return absl::OkStatus();
  }
  return CheckDtype(dtype);
}

}  // namespace shoal
