#include "worker/input/dataset/skipping_dataset.h"

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

constexpr uint64_t kMaxInARow = 100;
constexpr uint64_t kMaxNamedSkips = 100;
constexpr size_t kMaxKnown = 1 << 16;

}  // namespace

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsUnimplemented(status);
}

absl::Status WithRemedy(const absl::Status& damage) {
  if (!IsDamage(damage)) return damage;
  return absl::Status(damage.code(),
                      absl::StrCat(std::string(damage.message()),
                                   "; repair it, remove it, or skip damaged examples with "
                                   "\"damaged\": \"skip\" in the job's $.data"));
}

absl::Status SkippingDataset::Read(uint64_t index, std::span<const FeatureSpan> features,
                                   std::span<float> label) const {
  uint64_t begin = index;
  {
    MutexLock lock(&mutex_);
    if (const auto known = replacements_.find(index); known != replacements_.end())
      begin = known->second;
  }
  const absl::Status first = original().Read(begin, features, label);
  if (!IsDamage(first)) return first;
  for (uint64_t i = 1; i < kMaxInARow; ++i) {
    const uint64_t next = (begin + i) % size();
    const absl::Status status = original().Read(next, features, label);
    if (IsDamage(status)) continue;
    if (status.ok()) Note(index, first, next);
    return status;
  }
  return absl::DataLossError(absl::StrCat(std::string(first.message()), "; the ", kMaxInARow - 1,
                                          " after it are damaged, too"));
}

absl::Status SkippingDataset::ReadLabel(uint64_t index, std::span<float> label) const {
  const absl::Status status = original().ReadLabel(index, label);
  if (!IsDamage(status)) return status;
  std::vector<std::vector<float>> numbers;
  for (const Feature& feature : features()) numbers.emplace_back(ElementCount(feature.shape));
  const std::vector<FeatureSpan> spans(numbers.begin(), numbers.end());
  return Read(index, spans, label);
}

void SkippingDataset::Note(uint64_t index, const absl::Status& status, uint64_t replacement) const {
  uint64_t count;
  {
    MutexLock lock(&mutex_);
    if (replacements_.contains(index)) return;  // another thread recorded it
    count = ++skipped_;
    if (replacements_.size() < kMaxKnown) replacements_.emplace(index, replacement);
  }
  // Logs each of the first ones, then every thousandth, because a large set may have thousands.
  if (count > kMaxNamedSkips && count % 1000 != 0) return;
  LogWarning(absl::StrCat("skipped a damaged example: ", std::string(status.message())),
             {{"skipped", absl::StrCat(count)}});
}

}  // namespace shoal
