#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/dataset/dataset.h"
#include "worker/input/formats/arrays/array_file.h"

namespace shoal {

// Examples whose features and labels are rows of arrays. All arrays have the same number of rows.
class ArrayRows : public Dataset {
 public:
  struct Arrays {
    std::vector<std::unique_ptr<ArrayFile>> features;  // one for each input, in their order
    std::unique_ptr<ArrayFile> labels;                 // may be null
  };
  // Returns an error, with file and shape, if the arrays do not fit each other or the inputs.
  static absl::StatusOr<std::unique_ptr<Dataset>> Make(Arrays arrays,
                                                       const std::vector<Feature>& inputs);

  uint64_t size() const override { return arrays_.features[0]->rows(); }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override {
    return arrays_.labels == nullptr ? kNoLabel : arrays_.labels->row_shape();
  }
  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    return arrays_.labels == nullptr ? absl::OkStatus() : arrays_.labels->ReadRow(index, label);
  }
  std::string LabelSource() const override {
    return arrays_.labels == nullptr ? "" : arrays_.labels->path();
  }

 private:
  ArrayRows(Arrays arrays, std::vector<Feature> features)
      : arrays_(std::move(arrays)), features_(std::move(features)) {}

  const Arrays arrays_;
  const std::vector<Feature> features_;
};

}  // namespace shoal
