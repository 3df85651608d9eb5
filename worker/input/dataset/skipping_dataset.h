#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "worker/input/dataset/decorated_dataset.h"

namespace shoal {

// Whether `status` means a damaged example, and not, for example, a failing disk.
bool IsDamage(const absl::Status& status);
// Adds the remedy to `damage`, for a damaged example that ends the training.
absl::Status WithRemedy(const absl::Status& damage);

// Replaces each damaged example of another data set with the next readable one. This keeps all
// batches at full size. Wrap it around a subset, so that replacements are from the same part.
// Damage is kDataLoss and kUnimplemented. Logs the first damaged examples with their message and
// the count so far. If a hundred in a row are damaged, returns the error of the first.
class SkippingDataset : public DecoratedDataset {
 public:
  explicit SkippingDataset(std::unique_ptr<Dataset> original)
      : DecoratedDataset(std::move(original)) {}

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override;
  // Returns the original's label if it is readable. This finds wrong labels without reading every
  // picture.
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override;

 private:
  // Records that example `index` is damaged with `status`. `replacement` is the next readable one.
  void Note(uint64_t index, const absl::Status& status, uint64_t replacement) const;

  mutable Mutex mutex_;
  mutable uint64_t skipped_ ABSL_GUARDED_BY(mutex_) = 0;
  // Damaged examples and their replacements, so that each is logged once and not read again. At
  // most kMaxKnown.
  mutable std::map<uint64_t, uint64_t> replacements_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
