#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "worker/input/dataset/decorated_dataset.h"

namespace shoal {

// Another data set in which an example that is damaged reads as zeros, and is known as a gap: for
// predictions, in which nothing can stand in its place and the others keep theirs.
class GappedDataset : public DecoratedDataset {
 public:
  // Where gaps are not `allowed`, to read a damaged example is an error, as it is in the original.
  GappedDataset(std::unique_ptr<Dataset> original, bool allowed)
      : DecoratedDataset(std::move(original)), allowed_(allowed) {}

  // Of an example that was read.
  bool IsGap(uint64_t index) const;
  uint64_t gaps() const;
  // Why, of the first ones.
  std::vector<std::string> reasons() const;

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;

 private:
  const bool allowed_;
  mutable Mutex mutex_;
  mutable std::set<uint64_t> gaps_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::string> reasons_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
