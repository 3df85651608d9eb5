#pragma once

#include <cstdint>
#include <vector>

namespace shoal {

// What a worker has before it, as far as is known.
struct Backlog {
  double step_seconds = 0;  // what a step takes it; 0: nobody knows
  double seconds = 0;       // until it has done what it has
};

// How many of the `left` steps of a round that nobody has a worker should be given, of the `wanted`
// that it would have now: a round is over when its last step is, so not those that the other
// workers would have done, with all that comes after them, before it had done the first of them. By
// the pace that all have shown; who is of unknown pace is given what it wants, and nothing is
// expected of it. Whoever would be done first is always given something. Plain arithmetic,
// thread-safe.
uint64_t ShareOfRound(const Backlog& worker, const std::vector<Backlog>& others, uint64_t wanted,
                      uint64_t left);

}  // namespace shoal
