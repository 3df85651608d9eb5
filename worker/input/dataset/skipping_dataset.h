#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "worker/input/dataset/decorated_dataset.h"

namespace shoal {

// Whether `status` is of an example that is damaged, and not, say, of a disk that fails.
bool IsDamage(const absl::Status& status);
// The same, with what can be done where a damaged example ends the training.
absl::Status WithAdvice(const absl::Status& damage);

// Another data set, in which the next example that can be read stands in the place of one that is
// damaged, so that a batch is as large as it is everywhere. Around a subset, not within it: what
// stands in is of the same part. Damage is kDataLoss and kUnimplemented; the first damaged examples
// are logged by their message, with how many there were so far. Where a hundred in a row are
// damaged, reading is the error of the first.
class SkippingDataset : public DecoratedDataset {
 public:
  explicit SkippingDataset(std::unique_ptr<Dataset> original)
      : DecoratedDataset(std::move(original)) {}

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;
  // Of the original, where it can be read: whose label is out of place is to be heard of without
  // reading every picture.
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override;

 private:
  // `status` is that of example `index`, and `stand_in` the next one that could be read.
  void Note(uint64_t index, const absl::Status& status, uint64_t stand_in) const;

  mutable Mutex mutex_;
  mutable uint64_t skipped_ ABSL_GUARDED_BY(mutex_) = 0;
  // Damaged examples, and what stands in for each: they are named once, and not read again. No
  // more than kMostKnown.
  mutable std::map<uint64_t, uint64_t> stand_ins_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
