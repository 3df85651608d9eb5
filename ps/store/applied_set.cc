#include "ps/store/applied_set.h"

#include <algorithm>

namespace shoal {
namespace {

uint64_t Bit(uint64_t step) { return uint64_t{1} << (step % 64); }

}  // namespace

AppliedSet::AppliedSet(uint64_t window)
    : bits_(std::max<uint64_t>(1, window / 64 + (window % 64 != 0 ? 1 : 0)) * 64),
      ring_(bits_ / 64, 0) {}

bool AppliedSet::Contains(uint64_t step) const {
  if (step < base_) return true;
  return step < limit() && (ring_[step % bits_ / 64] & Bit(step)) != 0;
}

void AppliedSet::Add(uint64_t step) {
  word(step) |= Bit(step);
  end_ = std::max(end_, step + 1);
  while ((word(base_) & Bit(base_)) != 0) {
    word(base_) &= ~Bit(base_);
    ++base_;
  }
}

void AppliedSet::Reset(uint64_t base) {
  std::fill(ring_.begin(), ring_.end(), 0);
  base_ = end_ = base;
}

}  // namespace shoal
