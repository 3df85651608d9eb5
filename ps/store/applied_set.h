#pragma once

#include <cstdint>
#include <vector>

namespace shoal {

// The steps that a chunk has applied: all below base(), and some of the `window` steps from it on,
// as bits of a ring. Steps finish out of order, but never further ahead than the window. Plain
// state; not thread-safe.
class AppliedSet {
 public:
  // The window is rounded up to a multiple of 64.
  explicit AppliedSet(uint64_t window);

  uint64_t base() const { return base_; }
  // First step that does not fit into the window.
  uint64_t limit() const { return base_ + bits_; }
  bool Contains(uint64_t step) const;
  // Adds a step. Requires base() <= step < limit(), and that the set does not contain it.
  void Add(uint64_t step);
  // Makes the set contain exactly the steps below `base`.
  void Reset(uint64_t base);
  // Highest step contained, plus one; 0 when empty.
  uint64_t end() const { return end_; }

 private:
  uint64_t& word(uint64_t step) { return ring_[step % bits_ / 64]; }

  uint64_t bits_;
  std::vector<uint64_t> ring_;  // the bit of a step is number step % bits_
  uint64_t base_ = 0;
  uint64_t end_ = 0;
};

}  // namespace shoal
