#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace shoal {

// The announced steps that are not taken, in the order of announcement. It stores ranges, so a
// lease of any length has the same cost. A plain state machine; not thread-safe.
class ExpectedSteps {
 public:
  // Adds steps [begin, end). Steps that are already expected keep their place.
  void Add(uint64_t begin, uint64_t end);
  // Removes a step. Does nothing if it is not expected.
  void Remove(uint64_t step);
  void Clear() { ranges_.clear(); }

  std::optional<uint64_t> First() const {
    return ranges_.empty() ? std::nullopt : std::optional(ranges_.front().begin);
  }
  // Returns the first expected step that is not in `known`, a set or map of steps.
  template <typename Known>
  std::optional<uint64_t> FirstUnknown(const Known& known) const {
    for (const Range& range : ranges_) {
      for (uint64_t step = range.begin; step < range.end; ++step) {
        if (!known.contains(step)) return step;
      }
    }
    return std::nullopt;
  }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;  // begin < end
  };

  std::deque<Range> ranges_;  // in the order of announcement; no two overlap
};

}  // namespace shoal
