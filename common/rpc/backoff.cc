#include "common/rpc/backoff.h"

#include <algorithm>

namespace shoal {

Time Backoff::Next() {
  Time pause = first_;
  for (int i = 0; i < tries_ && pause < max_; ++i) pause *= 2;
  pause = std::min(pause, max_);
  ++tries_;
  // Xorshift64: only peers with different seeds need to differ.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const double share = static_cast<double>(random_ >> 11) / static_cast<double>(uint64_t{1} << 53);
  return pause - Time(static_cast<int64_t>(static_cast<double>(pause.count()) * share / 2));
}

}  // namespace shoal
