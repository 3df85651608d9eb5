#pragma once

#include <cstdint>
#include <string>

#include "common/rpc/event_loop.h"

namespace shoal {

// How a simulation went.
struct SimulationResult {
  std::string failure;  // empty: every invariant held, and the job was done
  std::string trace;    // what has happened, when it was wanted
  uint64_t events = 0;
  Time simulated{};
};

// Runs the workload of a seed to its end: the whole cluster, in this thread, without anything real.
// The same seed gives the same result, byte for byte.
SimulationResult Simulate(uint64_t seed, bool tracing);

}  // namespace shoal
