#pragma once

#include <cstdint>
#include <vector>

namespace shoal {

// The known backlog of a worker.
struct Backlog {
  double step_seconds = 0;  // the worker's time for a step; 0: unknown
  double seconds = 0;       // until the worker has done the steps that it holds
};

// Returns how many steps of a round `worker` should get. It asks for `wanted` steps; `left` steps
// of the round are not leased. A round ends with its last step. So the worker gets no step by whose
// end the others would have done all the remaining ones, at the pace that each has shown. A worker
// of unknown pace gets all that it asks for, and counts as 0 steps among the others. The worker
// that would be done first always gets at least one step, if any is left. Plain arithmetic,
// thread-safe.
uint64_t ShareOfRound(const Backlog& worker, const std::vector<Backlog>& others, uint64_t wanted,
                      uint64_t left);

}  // namespace shoal
