#include "worker/compute/runner/fitting_batch.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"

namespace shoal {
namespace {

constexpr int kMaxPlans = 8;

struct Size {
  int64_t examples;
  int64_t bytes;
};

}  // namespace

absl::StatusOr<int64_t> LargestFittingBatch(
    const TooLargeBatch& batch, const std::function<absl::StatusOr<int64_t>(int64_t)>& bytes_of) {
  Size none = {batch.examples, batch.needed_bytes};  // does not fit
  // A device may have enough bytes but not in one piece.
  const int64_t available = std::min(batch.available_bytes, none.bytes - 1);
  if (none.examples <= 1) return 0;
  SHOAL_ASSIGN_OR_RETURN(const int64_t of_one, bytes_of(1));
  if (of_one > available) return 0;
  Size fits = {1, of_one};
  int misses = 0;  // in a row
  for (int plans = 1; plans < kMaxPlans && none.examples - fits.examples > 1; ++plans) {
    // Guess on the line through both points. After a miss, guess below it: memory that grows in
    // steps may lie above the line repeatedly.
    const double below = misses == 0 ? 0 : std::ldexp(1.0, 2 * misses) / 256;
    const double share = (1 - std::min(below, 0.5)) * static_cast<double>(available - fits.bytes) /
                         static_cast<double>(none.bytes - fits.bytes);
    const auto more =
        static_cast<int64_t>(share * static_cast<double>(none.examples - fits.examples));
    const int64_t examples = std::clamp(fits.examples + more, fits.examples + 1, none.examples - 1);
    SHOAL_ASSIGN_OR_RETURN(const int64_t bytes, bytes_of(examples));
    if (bytes <= available) {
      fits = {examples, bytes};
      misses = 0;
    } else {
      none = {examples, bytes};
      ++misses;
    }
  }
  return fits.examples;
}

}  // namespace shoal
