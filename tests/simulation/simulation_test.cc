#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(SimulationTest, ASeedReplaysByteForByte) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const SimulationResult first = Simulate(seed, /*tracing=*/true);
    const SimulationResult second = Simulate(seed, /*tracing=*/true);
    EXPECT_FALSE(first.trace.empty());
    EXPECT_TRUE(first.trace == second.trace) << "seed " << seed;
    EXPECT_EQ(first.events, Simulate(seed, /*tracing=*/false).events)
        << "seed " << seed << ": tracing changes nothing";
  }
}

}  // namespace
}  // namespace shoal
