#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "common/rpc/event_loop.h"
#include "coordinator/steps/step_dispatcher.h"

namespace shoal {

// The workers of tests that lease steps, and when they ask.
inline constexpr StepDispatcher::WorkerKey kAnn = 1, kBob = 2, kEve = 3;
inline constexpr Time kNow = std::chrono::seconds(100);
// The time for which a step is leased.
inline constexpr Time kTimeout = std::chrono::seconds(60);

inline StepDispatcher MakeDispatcher(uint64_t total, uint64_t window = 1000, uint64_t base = 0,
                                     const std::vector<uint64_t>& done = {}) {
  return StepDispatcher({.total_steps = total, .window_steps = window, .lease_timeout = kTimeout},
                        base, done);
}

}  // namespace shoal
