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

// Wraps a data set: a damaged example reads as zeros and is recorded as a gap. For predictions,
// where no other example can replace it and the others must keep their places.
class GappedDataset : public DecoratedDataset {
 public:
  // If gaps are not `allowed`, reading a damaged example is an error, as in the original.
  GappedDataset(std::unique_ptr<Dataset> original, bool allowed)
      : DecoratedDataset(std::move(original)), allowed_(allowed) {}

  // Requires that the example was read.
  bool IsGap(uint64_t index) const;
  uint64_t gaps() const;
  // Returns the reasons of the first gaps.
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
