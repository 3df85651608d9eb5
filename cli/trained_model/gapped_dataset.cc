#include "cli/trained_model/gapped_dataset.h"

#include <algorithm>

#include "worker/input/dataset/skipping_dataset.h"

namespace shoal {
namespace {

constexpr size_t kMaxReasons = 20;

}  // namespace

bool GappedDataset::IsGap(uint64_t index) const {
  MutexLock lock(&mutex_);
  return gaps_.contains(index);
}

uint64_t GappedDataset::gaps() const {
  MutexLock lock(&mutex_);
  return gaps_.size();
}

std::vector<std::string> GappedDataset::reasons() const {
  MutexLock lock(&mutex_);
  return reasons_;
}

absl::Status GappedDataset::Read(uint64_t index, std::span<const FeatureSpan> features,
                                 std::span<float> label) const {
  const absl::Status status = original().Read(index, features, label);
  if (!allowed_ || !IsDamage(status)) return status;
  for (const FeatureSpan& feature : features) {
    std::fill(feature.floats.begin(), feature.floats.end(), 0.0f);
    std::fill(feature.bytes.begin(), feature.bytes.end(), uint8_t{0});
  }
  MutexLock lock(&mutex_);
  if (gaps_.insert(index).second && reasons_.size() < kMaxReasons)
    reasons_.emplace_back(status.message());
  return absl::OkStatus();
}

}  // namespace shoal
