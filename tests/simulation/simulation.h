#pragma once

#include <cstdint>
#include <string>

#include "common/rpc/event_loop.h"

namespace shoal {

// The result of a simulation.
struct SimulationResult {
  std::string failure;  // empty: all invariants held, and the job was done
  std::string trace;    // all events, if requested
  uint64_t events = 0;
  Time simulated{};
};

// Runs the workload of a seed to its end: the whole cluster in this thread, with everything
// simulated. The same seed gives the same result, byte for byte.
SimulationResult Simulate(uint64_t seed, bool tracing);

}  // namespace shoal
