#pragma once

#include <cstdint>

namespace shoal {

// A random number, never 0, that tells this life of a task from any other.
uint64_t DrawIncarnation();

}  // namespace shoal
