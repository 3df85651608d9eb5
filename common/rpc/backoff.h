#pragma once

#include <cstdint>

#include "common/rpc/event_loop.h"

namespace shoal {

// Pauses between tries: doubling from `first` to `most`, each shortened by up to a half at random,
// so that many peers do not come back at once. Not thread-safe.
class Backoff {
 public:
  Backoff(Time first, Time most, uint64_t seed) : first_(first), most_(most), random_(seed | 1) {}

  Time Next();
  // After success.
  void Reset() { tries_ = 0; }

 private:
  const Time first_;
  const Time most_;
  uint64_t random_;
  int tries_ = 0;
};

}  // namespace shoal
