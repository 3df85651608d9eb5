#include "cli/train/death_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr TaskId kPs{TaskType::kPs, 0};
constexpr TaskId kDeadWorker{TaskType::kWorker, 1};

TEST(DeathListTest, KeepsTheFirstDescriptionOfEachTask) {
  DeathList deaths;
  deaths.Add(kDeadWorker, "worker's first", "a");
  deaths.Add(kPs, "ps's first", "b");
  deaths.Add(kDeadWorker, "worker's second", "c");
  deaths.Add({TaskType::kWorker, 0}, "another worker's first", "d");
  EXPECT_EQ(deaths.FirstOf(kDeadWorker), "worker's first");
  EXPECT_EQ(deaths.FirstOf(kPs), "ps's first");
  EXPECT_EQ(deaths.FirstOf(TaskType::kWorker), "worker's first");
  EXPECT_THAT(deaths.ToString(), EndsWith(":\n  a\n  b\n  c\n  d"));
}

TEST(DeathListTest, OneAloneIsNoList) {
  DeathList deaths;
  deaths.Add(kPs, "", "a");
  EXPECT_EQ(deaths.ToString(), "");
}

TEST(DeathListTest, ListsTheNewestAndCountsTheRest) {
  DeathList deaths;
  for (int i = 1; i <= 1000; ++i) deaths.Add(kPs, "", "death " + std::to_string(i) + ".");
  const std::string text = deaths.ToString();
  EXPECT_THAT(text, AllOf(HasSubstr(":\n  980 "), HasSubstr("\n  death 981.\n"),
                          Not(HasSubstr("death 980.")), EndsWith("\n  death 1000.")));
}

TEST(DeathListTest, ARemovedDeathIsNeitherListedNorCounted) {
  DeathList deaths;
  for (int i = 0; i < 30; ++i) deaths.Add(kPs, "old", "old");
  deaths.Add(kDeadWorker, "w", "worker");
  deaths.Remove(kPs);
  EXPECT_EQ(deaths.ToString(), "");
  deaths.Add(kPs, "new", "ps");
  EXPECT_EQ(deaths.FirstOf(kPs), "new");
  EXPECT_THAT(deaths.ToString(), EndsWith(":\n  worker\n  ps"));
}

}  // namespace
}  // namespace shoal
