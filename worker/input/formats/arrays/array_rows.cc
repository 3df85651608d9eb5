#include "worker/input/formats/arrays/array_rows.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "worker/input/dataset/feature_shapes.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<Dataset>> ArrayRows::Make(Arrays arrays,
                                                         const std::vector<Feature>& inputs) {
  std::vector<Feature> shaped = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ArrayFile& array = *arrays.features[i];
    if (const ArrayFile& first = *arrays.features[0]; array.rows() != first.rows()) {
      return absl::InvalidArgumentError(absl::StrCat(array.path(), " has ", array.rows(),
                                                     " examples, but ", first.path(), " has ",
                                                     first.rows(), "; expected equal numbers"));
    }
    if (arrays.labels != nullptr && array.rows() != arrays.labels->rows()) {
      return absl::InvalidArgumentError(absl::StrCat(
          array.path(), " has ", array.rows(), " examples, but ", arrays.labels->path(), " has ",
          arrays.labels->rows(), " labels; expected equal numbers"));
    }
    SHOAL_ASSIGN_OR_RETURN(shaped[i].shape,
                           ShapeForInput(array.row_shape(), inputs[i], array.path()));
    shaped[i].bytes = array.bytes();
  }
  return std::unique_ptr<Dataset>(new ArrayRows(std::move(arrays), std::move(shaped)));
}

absl::Status ArrayRows::Read(uint64_t index, std::span<const FeatureSpan> features,
                             std::span<float> label) const {
  for (size_t i = 0; i < features.size(); ++i) {
    const ArrayFile& array = *arrays_.features[i];
    SHOAL_RETURN_IF_ERROR(array.ReadRow(index, features[i]));
    if (absl::Status status = CheckValues(features_[i], features[i].floats); !status.ok()) {
      return WithSource(absl::StrCat(array.path(), ": example ", index), status);
    }
  }
  return ReadLabel(index, label);
}

}  // namespace shoal
