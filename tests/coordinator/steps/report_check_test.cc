#include "coordinator/steps/report_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

// 25 examples in batches of 10, one epoch.
class ReportCheckTest : public testing::Test {
 protected:
  static proto::StepDone StepOf(uint64_t step, uint64_t examples, int sums) {
    proto::StepDone done;
    done.set_step(step);
    done.set_examples(examples);
    for (int i = 0; i < sums; ++i) done.add_metric_sums(1);
    return done;
  }
  static proto::EvaluationDone BatchOf(uint64_t batch, uint64_t examples, int sums) {
    proto::EvaluationDone done;
    done.set_batch(batch);
    done.set_examples(examples);
    for (int i = 0; i < sums; ++i) done.add_metric_sums(1);
    return done;
  }

  const StepPlan plan_{25, 10, 1, 0};
  std::optional<RoundPlan> rounds_;
  const std::string strategy_ = "async";
  const ReportCheck check_{
      .plan = plan_, .rounds = rounds_, .metric_sums = 2, .strategy = strategy_};
};

TEST_F(ReportCheckTest, AStepHasTheExamplesAndSumsOfTheJob) {
  EXPECT_TRUE(check_.Step(StepOf(0, 10, 2)).ok());
  EXPECT_TRUE(check_.Step(StepOf(2, 5, 2)).ok()) << "the last batch is shorter";
  EXPECT_EQ(check_.Step(StepOf(2, 10, 2)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(check_.Step(StepOf(0, 10, 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(check_.Step(StepOf(3, 10, 2)).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReportCheckTest, OnlyAJobWithRoundsHasAlreadyAppliedSteps) {
  proto::StepDone already_applied = StepOf(0, 0, 0);
  already_applied.set_already_applied(true);
  EXPECT_EQ(check_.Step(already_applied).code(), absl::StatusCode::kInvalidArgument);
  rounds_.emplace(plan_, 2);
  EXPECT_TRUE(check_.Step(already_applied).ok());
}

TEST_F(ReportCheckTest, ABatchOfTheTestSetHasItsExamplesAndSums) {
  const StepPlan batches(12, 10, 1, 0);
  EXPECT_TRUE(check_.Batch(BatchOf(1, 2, 2), batches).ok());
  EXPECT_EQ(check_.Batch(BatchOf(1, 10, 2), batches).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(check_.Batch(BatchOf(0, 10, 3), batches).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(check_.Batch(BatchOf(2, 10, 2), batches).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shoal
