#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace shoal {

// The steps that were announced and not yet taken, in the order of announcement. Holds ranges, so
// that a lease of any length costs the same. A plain state machine; not thread-safe.
class ExpectedSteps {
 public:
  // Adds steps [begin, end); those already expected keep their place.
  void Add(uint64_t begin, uint64_t end);
  // Removes a step; nothing where it is not expected.
  void Remove(uint64_t step);
  void Clear() { ranges_.clear(); }

  std::optional<uint64_t> First() const {
    return ranges_.empty() ? std::nullopt : std::optional(ranges_.front().begin);
  }
  // The first expected step that `known`, a set or map of steps, does not contain.
  template <typename Known>
  std::optional<uint64_t> FirstNotIn(const Known& known) const {
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
