#include "worker/input/batches/expected_steps.h"

#include <algorithm>

namespace shoal {

void ExpectedSteps::Add(uint64_t begin, uint64_t end) {
  while (begin < end) {
    // Either `begin` is already expected, or there is a gap from it to the next expected step.
    uint64_t known_end = begin;
    uint64_t gap_end = end;
    for (const Range& range : ranges_) {
      if (range.begin <= begin && begin < range.end) known_end = range.end;
      if (range.begin > begin) gap_end = std::min(gap_end, range.begin);
    }
    if (known_end > begin) {
      begin = known_end;
    } else {
      ranges_.push_back({begin, gap_end});
      begin = gap_end;
    }
  }
}

void ExpectedSteps::Remove(uint64_t step) {
  const auto range = std::find_if(ranges_.begin(), ranges_.end(), [step](const Range& candidate) {
    return candidate.begin <= step && step < candidate.end;
  });
  if (range == ranges_.end()) return;
  const Range after = {step + 1, range->end};
  range->end = step;
  auto position = range + 1;
  if (range->begin == range->end) position = ranges_.erase(range);
  if (after.begin < after.end) ranges_.insert(position, after);
}

}  // namespace shoal
