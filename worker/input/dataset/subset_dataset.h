#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/step_plan/index_permutation.h"
#include "worker/input/dataset/decorated_dataset.h"

namespace shoal {

// The training, validation or test part of another data set. A seeded permutation orders the
// examples, and each part is a range of this order: first test, then validation, then training. The
// parts thus share no example and have exact sizes, without a table. They are the same on every
// machine and in every run while the data set has the same number of examples.
class SubsetDataset : public DecoratedDataset {
 public:
  // Makes the part by the source's subset, validation_split, test_split and seed. Rejects an empty
  // part.
  static absl::StatusOr<std::unique_ptr<Dataset>> Make(std::unique_ptr<Dataset> whole,
                                                       const DataSource& source);

  uint64_t size() const override { return size_; }
  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override;
  std::string NameOf(uint64_t index) const override {
    return original().NameOf(place_(first_ + index));
  }
  std::string LabelSource() const override;

 private:
  SubsetDataset(std::unique_ptr<Dataset> whole, const DataSource& source, uint64_t first,
                uint64_t size);

  const std::string subset_;
  const IndexPermutation place_;
  const uint64_t first_;  // first position in the permutation
  const uint64_t size_;
};

}  // namespace shoal
