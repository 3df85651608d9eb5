#pragma once

#include <cstdint>

#include "common/rpc/event_loop.h"

namespace shoal {

// Pauses between tries. They double from `first` to `max`. Each is shortened by up to a half at
// random. Otherwise many peers would come back at once. Not thread-safe.
class Backoff {
 public:
  Backoff(Time first, Time max, uint64_t seed) : first_(first), max_(max), random_(seed | 1) {}

  // Returns the pause before the next try.
  Time Next();
  // Begins again with `first`. Call it after a success.
  void Reset() { tries_ = 0; }

 private:
  const Time first_;
  const Time max_;
  uint64_t random_;
  int tries_ = 0;
};

}  // namespace shoal
