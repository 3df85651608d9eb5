#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/input/dataset/dataset.h"

namespace shoal {

// The base of data sets that change one aspect of another data set. Everything else comes from the
// original.
class DecoratedDataset : public Dataset {
 public:
  uint64_t size() const override { return original_->size(); }
  const std::vector<Feature>& features() const override { return original_->features(); }
  const Shape& label_shape() const override { return original_->label_shape(); }
  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    return original_->Read(index, features, label);
  }
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    return original_->ReadLabel(index, label);
  }
  std::string NameOf(uint64_t index) const override { return original_->NameOf(index); }
  std::string LabelSource() const override { return original_->LabelSource(); }
  bool IsCostlyToRead() const override { return original_->IsCostlyToRead(); }
  DatasetMemory memory() const override { return original_->memory(); }
  uint64_t bytes_for_label() const override { return original_->bytes_for_label(); }

 protected:
  explicit DecoratedDataset(std::unique_ptr<Dataset> original) : original_(std::move(original)) {}

  const Dataset& original() const { return *original_; }

 private:
  const std::unique_ptr<Dataset> original_;
};

}  // namespace shoal
