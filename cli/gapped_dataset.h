#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "worker/input/dataset.h"

namespace shoal {

// Another data set in which an example that is damaged reads as zeros, and is known as a gap: for
// predictions, in which nothing can stand in its place and the others keep theirs.
class GappedDataset : public Dataset {
 public:
  // Where gaps are not `allowed`, to read a damaged example is an error, as it is in the original.
  GappedDataset(std::unique_ptr<Dataset> original, bool allowed)
      : original_(std::move(original)), allowed_(allowed) {}

  // Of an example that was read.
  bool IsGap(uint64_t index) const;
  uint64_t gaps() const;
  // Why, of the first ones.
  std::vector<std::string> reasons() const;

  uint64_t size() const override { return original_->size(); }
  const std::vector<Feature>& features() const override { return original_->features(); }
  const Shape& label_shape() const override { return original_->label_shape(); }
  absl::Status Read(uint64_t index, std::span<const std::span<float>> features,
                    std::span<float> label) const override;
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    return original_->ReadLabel(index, label);
  }
  std::string NameOf(uint64_t index) const override { return original_->NameOf(index); }
  std::string LabelSource() const override { return original_->LabelSource(); }
  bool IsWorkToRead() const override { return original_->IsWorkToRead(); }
  DatasetMemory memory() const override { return original_->memory(); }
  uint64_t bytes_for_label() const override { return original_->bytes_for_label(); }

 private:
  const std::unique_ptr<Dataset> original_;
  const bool allowed_;
  mutable Mutex mutex_;
  mutable std::set<uint64_t> gaps_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::string> reasons_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
