// docs/contributing/adding-a-kind.md, "An optimizer" and "A learning rate schedule": what the page
// shows is built into this program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_table.h"
#include "common/optimizer/schedules/schedule_table.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ContributingTest, TheOptimizerOfThePageIsReadDocumentedAndApplied) {
  EXPECT_THAT(OptimizerTable().Names(), Contains("Signum"));
  EXPECT_THAT(OptimizerTable().Names(), Contains("Adam"));
  EXPECT_THAT(OptimizerTable().Docs(false),
              Contains(StartsWith("| `Signum` | `learning_rate` (0.0001; ")));
  EXPECT_THAT(OptimizerTable().Docs(false),
              Contains(HasSubstr("`momentum` (0.9; from 0, below 1) |")));
  const auto wrong = MakeOptimizer(R"({"class_name": "Signum", "config": {"momentum": 1}})");
  EXPECT_THAT(std::string(wrong.status().message()),
              StartsWith("$.optimizer.config.momentum: is 1; must be"));

  const auto optimizer = MakeOptimizer(
      R"({"class_name": "Signum", "config": {"learning_rate": 0.5, "momentum": 0.75}})");
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  EXPECT_THAT((*optimizer)->slot_names(), ElementsAre("signum_m"));
  std::vector<float> values = {1, 1, 1};
  std::vector<float> momentum = {0, 8, 0};
  float* const slots[] = {momentum.data()};
  const std::vector<float> gradient = {4, -4, 0};
  (*optimizer)->Prepare(1)->Apply(gradient, values, values, slots);
  EXPECT_THAT(momentum, ElementsAre(1, 5, 0));
  EXPECT_THAT(values, ElementsAre(0.5, 0.5, 1));
}

TEST(ContributingTest, TheScheduleOfThePageIsReadDocumentedAndFollowed) {
  EXPECT_THAT(ScheduleTable().Names(), Contains("LinearWarmup"));
  EXPECT_THAT(ScheduleTable().Docs(false),
              Contains(StartsWith("| `LinearWarmup` | `target` (required; ")));
  const auto optimizer = MakeOptimizer(R"({"class_name": "SGD", "config": {"learning_rate":
      {"class_name": "LinearWarmup", "config": {"target": 0.8, "warmup_steps": 4}}}})");
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  EXPECT_DOUBLE_EQ((*optimizer)->LearningRate(1), 0.2);
  EXPECT_DOUBLE_EQ((*optimizer)->LearningRate(3), 0.6);
  EXPECT_DOUBLE_EQ((*optimizer)->LearningRate(5), 0.8);
  EXPECT_DOUBLE_EQ((*optimizer)->LearningRate(100), 0.8);
}

}  // namespace
}  // namespace shoal
