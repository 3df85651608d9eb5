#include "worker/compute/plan/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using ::testing::ElementsAre;

// Offsets and sizes in floats. Between 0 and 1 and behind 3 there is a gap.
ModelLayout Layout() {
  ModelLayout layout;
  layout.variables = {{0, 10}, {16, 16}, {32, 64}, {96, 5}, {112, 16}};
  layout.size = 128;
  return layout;
}

std::vector<std::pair<int64_t, int64_t>> Ranges(const Transfer& transfer) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [offset, size] : transfer.ranges) ranges.emplace_back(offset, size);
  return ranges;
}

TEST(PlanTransfersTest, AreAsLargeAsAskedForAndInOrder) {
  const auto transfers = PlanTransfers({{3, 1}, {1, 2}, {0, 5}, {4, 6}, {2, 9}}, Layout(), 80);
  ASSERT_EQ(transfers.size(), 3u);
  EXPECT_THAT(transfers[0].variables, ElementsAre(3, 1));  // 20 and 64 bytes
  EXPECT_EQ(transfers[0].first_step, 1);
  EXPECT_EQ(transfers[0].last_step, 2);
  EXPECT_THAT(transfers[1].variables, ElementsAre(0, 4));
  EXPECT_EQ(transfers[1].first_step, 5);
  EXPECT_EQ(transfers[1].last_step, 6);
  EXPECT_THAT(transfers[2].variables, ElementsAre(2)) << "what is left";
}

// Of 256 bytes, between two small ones.
TEST(PlanTransfersTest, ASmallVariableDoesNotWaitForALargeOne) {
  const auto transfers = PlanTransfers({{3, 1}, {2, 2}, {0, 5}, {1, 6}}, Layout(), 256);
  ASSERT_EQ(transfers.size(), 3u);
  EXPECT_THAT(transfers[0].variables, ElementsAre(3));
  EXPECT_EQ(transfers[0].last_step, 1);
  EXPECT_THAT(transfers[1].variables, ElementsAre(2));
  EXPECT_THAT(transfers[2].variables, ElementsAre(0, 1));
}

TEST(PlanTransfersTest, JoinWhatLiesEndToEndAndLeaveGapsAlone) {
  const auto transfers = PlanTransfers({{4, 0}, {2, 0}, {0, 1}, {3, 1}, {1, 2}}, Layout(), 10000);
  ASSERT_EQ(transfers.size(), 1u);
  EXPECT_THAT(Ranges(transfers[0]),
              ElementsAre(std::pair(0, 40), std::pair(64, 340), std::pair(448, 64)));
}

TEST(PlanTransfersTest, OneOfEachWhereAnySizeWillDo) {
  EXPECT_EQ(PlanTransfers({{0, 0}, {1, 0}, {2, 3}}, Layout(), 1).size(), 3u);
  EXPECT_TRUE(PlanTransfers({}, Layout(), 1).empty());
}

}  // namespace
}  // namespace shoal
