#include "cli/train/restart_policy.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TaskId kWorker{TaskType::kWorker, 1};

TEST(RestartPolicyTest, PausesGrowToTheLongest) {
  RestartPolicy policy(/*max_restarts=*/100);
  Time longest{0};
  for (int i = 0; i < 100; ++i) {
    const std::optional<Time> pause = policy.PauseBeforeRestart(kWorker, seconds(1));
    ASSERT_TRUE(pause.has_value());
    EXPECT_GE(*pause, milliseconds(50));
    EXPECT_LE(*pause, seconds(10));
    longest = std::max(longest, *pause);
    if (i == 0) {
      EXPECT_LE(*pause, milliseconds(100)) << "a first death costs next to nothing";
    }
  }
  EXPECT_GE(longest, seconds(5));
}

TEST(RestartPolicyTest, EachTaskHasItsOwnLimit) {
  RestartPolicy policy(/*max_restarts=*/2);
  EXPECT_TRUE(policy.PauseBeforeRestart(kWorker, seconds(1)));
  EXPECT_TRUE(policy.PauseBeforeRestart(kWorker, seconds(1)));
  EXPECT_FALSE(policy.PauseBeforeRestart(kWorker, seconds(1)));
  EXPECT_EQ(policy.restarts(kWorker), 2);
  EXPECT_TRUE(policy.PauseBeforeRestart({TaskType::kWorker, 0}, seconds(1)));
  EXPECT_TRUE(policy.PauseBeforeRestart({TaskType::kPs, 1}, seconds(1)));
}

TEST(RestartPolicyTest, ALongRunResetsTheRestartCount) {
  RestartPolicy policy(/*max_restarts=*/1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(policy.PauseBeforeRestart(kWorker, seconds(60)));
    EXPECT_EQ(policy.restarts(kWorker), 1);
  }
  EXPECT_FALSE(policy.PauseBeforeRestart(kWorker, seconds(59)));
}

TEST(RestartPolicyTest, AMaxOfZeroAllowsNoRestart) {
  RestartPolicy policy(/*max_restarts=*/0);
  EXPECT_FALSE(policy.PauseBeforeRestart(kWorker, seconds(1)));
  EXPECT_FALSE(policy.PauseBeforeRestart(kWorker, seconds(600)));
}

}  // namespace
}  // namespace shoal
