#include "worker/input/damaged_examples.h"

#include "absl/strings/str_cat.h"
#include "common/daemon/logging.h"

namespace shoal {
namespace {

constexpr int kMostInARow = 100;
constexpr uint64_t kMostNamed = 100;

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsUnimplemented(status);
}

}  // namespace

absl::Status DamagedExamples::Read(uint64_t index, uint64_t size,
                                   const std::function<absl::Status(uint64_t index)>& read) const {
  const absl::Status first = read(index);
  if (!skip_ || !IsDamage(first)) return first;
  Count(first);
  for (int i = 1; i < kMostInARow; ++i) {
    const absl::Status next = read((index + i) % size);
    if (!IsDamage(next)) return next;
  }
  return absl::DataLossError(absl::StrCat(std::string(first.message()), "; and so are the ",
                                          kMostInARow - 1, " after it"));
}

void DamagedExamples::Count(const absl::Status& status) const {
  const uint64_t count = ++skipped_;
  // The first ones each, then now and then: an epoch of a large set may have thousands.
  if (count > kMostNamed && count % 1000 != 0) return;
  LogWarning(absl::StrCat("skipped a damaged example: ", std::string(status.message())),
             {{"skipped", absl::StrCat(count)}});
}

}  // namespace shoal
