#include "common/model/keras/options/regularizer_config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/json/json_text.h"
#include "common/json/keras_object.h"
#include "common/json/keras_table.h"

namespace shoal {
namespace {

const char* const kNames[] = {"L1", "L2", "L1L2", "OrthogonalRegularizer"};

void ReadOptions(const std::string& name, KerasOptions& options, Regularizer* result) {
  if (name == "L1") result->l1 = options.Number("l1", 0.01, kNonNegativeNumbers);
  if (name == "L2") result->l2 = options.Number("l2", 0.01, kNonNegativeNumbers);
  if (name == "L1L2") ReadPenaltyFactors(options, result);
  if (name == "OrthogonalRegularizer") {
    result->orthogonal = options.Number("factor", 0.01, kNonNegativeNumbers);
    result->of_columns = options.OneOf("mode", {"rows", "columns"}, 0) == 1;
  }
}

}  // namespace

void ReadPenaltyFactors(KerasOptions& options, Regularizer* regularizer) {
  regularizer->l1 = options.Number("l1", 0, kNonNegativeNumbers);
  regularizer->l2 = options.Number("l2", 0, kNonNegativeNumbers);
}

absl::StatusOr<RegularizerConfig> ReadRegularizer(const JsonNode& json) {
  RegularizerConfig result = {.json = json};
  if (json.is_null()) return result;
  SHOAL_ASSIGN_OR_RETURN(const KerasObject object, ReadModelPart(json));
  JsonErrors errors("");
  KerasOptions options(object, &errors);
  for (const char* known : kNames) {
    if (!NamesKerasClass(object.class_name, known, "")) continue;
    ReadOptions(known, options, &result.regularizer);
    SHOAL_RETURN_IF_ERROR(options.Finish());
    return result;
  }
  errors.AddUnimplemented(
      object.name_path,
      absl::StrCat("Shoal has no regularizer ", ShortJson(object.class_name),
                   SuggestName(object.class_name, {std::begin(kNames), std::end(kNames)})));
  return errors.ToStatus();
}

absl::Status CheckShape(const RegularizerConfig& regularizer, const Shape& shape) {
  const absl::Status status = CheckShape(regularizer.regularizer, shape);
  return status.ok() ? status : regularizer.json.Invalid(std::string(status.message()));
}

}  // namespace shoal
