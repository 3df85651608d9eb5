#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace shoal {

// Returns the seed of a randomized test: SHOAL_TEST_SEED if it is set, to replay a failure; else a
// new one. Put SeedText into SCOPED_TRACE, so that a failure shows how to repeat it.
inline uint64_t TestSeed() {
  const char* const given = std::getenv("SHOAL_TEST_SEED");
  return given == nullptr ? std::random_device()() : std::strtoull(given, nullptr, 10);
}
// The same, but 1 in place of a new one.
inline uint64_t TestSeedOrOne() {
  return std::getenv("SHOAL_TEST_SEED") == nullptr ? 1 : TestSeed();
}

inline std::string SeedText(uint64_t seed) { return "SHOAL_TEST_SEED=" + std::to_string(seed); }

}  // namespace shoal
