#include "worker/input/array_rows.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/feature_shapes.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<Dataset>> ArrayRows::Make(
    const std::vector<DataSource::Feature>& features, Arrays arrays,
    const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<const DataSource::Feature*> matched,
                         MatchFeatures(features, inputs));
  Arrays ordered{.labels = std::move(arrays.labels)};
  std::vector<Feature> shaped = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::unique_ptr<ArrayFile>& array = arrays.features[matched[i] - features.data()];
    if (array->rows() != ordered.labels->rows()) {
      return absl::InvalidArgumentError(absl::StrCat(
          array->path(), " has ", array->rows(), " examples, but ", ordered.labels->path(), " has ",
          ordered.labels->rows(), " labels; expected as many of both"));
    }
    SHOAL_ASSIGN_OR_RETURN(shaped[i].shape,
                           ShapeForInput(array->row_shape(), inputs[i], array->path()));
    ordered.features.push_back(std::move(array));
  }
  return std::unique_ptr<Dataset>(new ArrayRows(std::move(ordered), std::move(shaped)));
}

absl::Status ArrayRows::Read(uint64_t index, std::span<const std::span<float>> features,
                             std::span<float> label) const {
  for (size_t i = 0; i < features.size(); ++i) {
    const ArrayFile& array = *arrays_.features[i];
    SHOAL_RETURN_IF_ERROR(array.ReadRow(index, features[i]));
    if (absl::Status status = CheckValues(features_[i], features[i]); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(array.path(), ": example ", index, ": ", std::string(status.message())));
    }
  }
  return ReadLabel(index, label);
}

}  // namespace shoal
