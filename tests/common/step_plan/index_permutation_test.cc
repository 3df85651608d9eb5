#include "common/step_plan/index_permutation.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <unordered_set>
#include <vector>

namespace shoal {
namespace {

std::vector<uint64_t> Order(uint64_t size, uint64_t seed, uint64_t epoch) {
  const IndexPermutation permutation(size, seed, epoch);
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < size; ++i) order.push_back(permutation(i));
  return order;
}

TEST(IndexPermutationTest, IsABijectionForEverySmallSize) {
  for (uint64_t size = 1; size <= 2000; ++size) {
    const IndexPermutation permutation(size, /*seed=*/size * 7, /*epoch=*/size % 3);
    std::vector<bool> seen(size);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t to = permutation(i);
      ASSERT_LT(to, size);
      ASSERT_FALSE(seen[to]) << "size " << size << ": " << to << " twice";
      seen[to] = true;
    }
  }
}

TEST(IndexPermutationTest, StaysInsideAndApartForBigSizes) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const uint64_t size : {(uint64_t{1} << 32) - 1, uint64_t{1} << 32, (uint64_t{1} << 32) + 1,
                              uint64_t{1} << 62, (uint64_t{1} << 62) + 1, kMax}) {
    const IndexPermutation permutation(size, 5, 0);
    std::unordered_set<uint64_t> seen;
    for (uint64_t i = 0; i < 20000; ++i) {
      // From both ends: the first and the last positions.
      for (const uint64_t position : {i, size - 1 - i}) {
        const uint64_t to = permutation(position);
        ASSERT_LT(to, size);
        ASSERT_TRUE(seen.insert(to).second) << "size " << size << ": " << to << " twice";
      }
    }
  }
}

TEST(IndexPermutationTest, DiffersBySeedAndByEpoch) {
  EXPECT_EQ(Order(1000, 1, 0), Order(1000, 1, 0));
  EXPECT_NE(Order(1000, 1, 0), Order(1000, 1, 1));
  EXPECT_NE(Order(1000, 1, 0), Order(1000, 2, 0));
  EXPECT_NE(Order(1000, 1, 2), Order(1000, 2, 1));
  EXPECT_NE(Order(1000, 0, 1), Order(1000, 1, 0));
}

// A changed value would make a resumed job use other batches than the checkpoint's job.
TEST(IndexPermutationTest, KeepsItsValues) {
  EXPECT_EQ(Order(10, 42, 3), (std::vector<uint64_t>{8, 9, 6, 7, 5, 0, 1, 4, 3, 2}));
  const IndexPermutation permutation(60000, 42, 3);
  EXPECT_EQ(permutation(0), 45429u);
  EXPECT_EQ(permutation(59999), 18809u);
}

// Over many seeds, position p lands in each tenth of the range about equally often.
TEST(IndexPermutationTest, SpreadsEveryPositionEvenly) {
  constexpr int kSeeds = 20000;
  constexpr uint64_t kSize = 1000;
  for (const uint64_t position : {0, 1, 500, 999}) {
    std::vector<int> counts(10);
    for (int seed = 0; seed < kSeeds; ++seed) {
      ++counts[IndexPermutation(kSize, seed, 0)(position) / 100];
    }
    double chi_squared = 0;
    for (const int count : counts) {
      const double difference = count - kSeeds / 10.0;
      chi_squared += difference * difference / (kSeeds / 10.0);
    }
    EXPECT_LT(chi_squared, 33.7) << "position " << position;  // 9 degrees of freedom, p = 0.0001
  }
}

// Neighbours do not stay neighbours, and few examples stay where they were.
TEST(IndexPermutationTest, MixesNeighboursAndFixedPoints) {
  constexpr uint64_t kSize = 60000;
  const std::vector<uint64_t> order = Order(kSize, 7, 0);
  int neighbours = 0;
  int fixed = 0;
  for (uint64_t i = 0; i + 1 < kSize; ++i) {
    const uint64_t distance =
        order[i] > order[i + 1] ? order[i] - order[i + 1] : order[i + 1] - order[i];
    if (distance == 1) ++neighbours;  // 2 are expected of a random order, Poisson
    if (order[i] == i) ++fixed;       // 1 is expected
  }
  EXPECT_LE(neighbours, 15);
  EXPECT_LE(fixed, 12);
}

}  // namespace
}  // namespace shoal
