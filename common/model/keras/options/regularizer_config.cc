#include "common/model/keras/options/regularizer_config.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/json/keras_table.h"

namespace shoal {
namespace {

const char* const kNames[] = {"L1", "L2", "L1L2", "OrthogonalRegularizer"};

// A factor of a penalty; Keras takes null for the default.
absl::StatusOr<double> ReadFactor(ConfigReader& config, const char* key, double otherwise) {
  const JsonNode json = config[key];
  SHOAL_ASSIGN_OR_RETURN(const double factor, json.Number(otherwise));
  if (factor >= 0 && std::isfinite(factor)) return factor;
  return json.Invalid(absl::StrCat(factor, " is negative"));
}

absl::Status ReadOptions(const std::string& name, ConfigReader& config, Regularizer* result) {
  if (name == "L1") {
    SHOAL_ASSIGN_OR_RETURN(result->l1, ReadFactor(config, "l1", 0.01));
  }
  if (name == "L2") {
    SHOAL_ASSIGN_OR_RETURN(result->l2, ReadFactor(config, "l2", 0.01));
  }
  if (name == "L1L2") SHOAL_RETURN_IF_ERROR(ReadPenaltyFactors(config, result));
  if (name == "OrthogonalRegularizer") {
    SHOAL_ASSIGN_OR_RETURN(result->orthogonal, ReadFactor(config, "factor", 0.01));
    SHOAL_ASSIGN_OR_RETURN(const size_t mode, config["mode"].OneOf({"rows", "columns"}, 0));
    result->of_columns = mode == 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadPenaltyFactors(ConfigReader& config, Regularizer* regularizer) {
  SHOAL_ASSIGN_OR_RETURN(regularizer->l1, ReadFactor(config, "l1", 0));
  SHOAL_ASSIGN_OR_RETURN(regularizer->l2, ReadFactor(config, "l2", 0));
  return absl::OkStatus();
}

absl::StatusOr<RegularizerConfig> ReadRegularizer(const JsonNode& json) {
  RegularizerConfig result = {.json = json};
  if (json.is_null()) return result;
  SHOAL_RETURN_IF_ERROR(json.ExpectKerasOwn());
  const JsonNode name_json = json.is_object() ? json["class_name"] : json;
  SHOAL_ASSIGN_OR_RETURN(const std::string name, name_json.String());
  ConfigReader config(json["config"], name);
  if (!config.config().is_null()) SHOAL_RETURN_IF_ERROR(config.config().ExpectObject());
  for (const char* known : kNames) {
    if (!NamesKerasClass(name, known, "")) continue;
    SHOAL_RETURN_IF_ERROR(ReadOptions(known, config, &result.regularizer));
    SHOAL_RETURN_IF_ERROR(config.RefuseUnread());
    return result;
  }
  return name_json.Unimplemented(
      absl::StrCat("Shoal has no regularizer ", name_json.Text(),
                   SuggestName(name, {std::begin(kNames), std::end(kNames)})));
}

absl::Status CheckShape(const RegularizerConfig& regularizer, const Shape& shape) {
  const absl::Status status = CheckShape(regularizer.regularizer, shape);
  return status.ok() ? status : regularizer.json.Invalid(std::string(status.message()));
}

}  // namespace shoal
