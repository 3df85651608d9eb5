#pragma once

#include <cstdint>

namespace shoal {

// Returns a random number, never 0, that identifies this life of a task.
uint64_t DrawIncarnation();

}  // namespace shoal
