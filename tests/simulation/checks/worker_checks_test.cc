#include "tests/simulation/checks/worker_checks.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {
namespace {

constexpr uint64_t kSteps = 10;

// A worker that trains in timeline 1 with one chunk, step 3 first.
class WorkerChecksTest : public testing::Test {
 protected:
  WorkerChecksTest() {
    workload_.job.batch_size = 1;
    workload_.job.steps = kSteps;
    workload_.training_examples = kSteps;
    checks_.OnPrepare(process_, {&workload_, &sums_});
    Open(1);
    Pull(1);
  }

  void Open(uint64_t timeline) {
    proto::WorkerOrder order;
    order.mutable_timeline_opened()->set_timeline(timeline);
    checks_.OnOrder(process_, order);
  }
  void Pull(uint64_t timeline) {
    proto::ChunkValues values;
    values.set_timeline(timeline);
    checks_.OnValues(process_, "ps0", values);
  }
  static proto::Push PushOf(uint64_t timeline, uint64_t step) {
    proto::Push push;
    push.set_timeline(timeline);
    push.set_step(step);
    return push;
  }
  bool failed() const { return world_.failure().has_value(); }

  World world_{1, /*tracing=*/false};
  Workload workload_;
  const ExpectedSums sums_{ExpectedSums::Options{
      .seed = 1, .variables = {Variable{.name = "v", .shape = {1}}}, .steps = kSteps}};
  const SimulatedProcess process_{
      SimulatedProcess::Options{.world = &world_, .name = "worker0#1", .host = "worker0"}};
  TrainedJob job_{SimulatedJob{&workload_, &sums_}};
  WorkerChecks checks_{&world_, &job_};
};

TEST_F(WorkerChecksTest, AGradientIsPushedWithItsStepAndTimeline) {
  checks_.OnTrain(process_, 3, 1);
  checks_.OnPush(process_, PushOf(1, 3));
  EXPECT_FALSE(failed());
  checks_.OnPush(process_, PushOf(1, 4));
  EXPECT_TRUE(failed());
}

TEST_F(WorkerChecksTest, AGradientKeepsTheTimelineInWhichItBegan) {
  checks_.OnTrain(process_, 3, 1);
  Open(2);
  checks_.OnPush(process_, PushOf(2, 3));
  EXPECT_TRUE(failed());
}

TEST_F(WorkerChecksTest, ANewTimelineNeedsNewParameters) {
  Open(2);
  Pull(1);  // late
  EXPECT_FALSE(failed());
  checks_.OnTrain(process_, 3, 1);
  EXPECT_TRUE(failed());
}

TEST_F(WorkerChecksTest, ParametersOfTheNewTimelineAreEnough) {
  Open(2);
  Pull(2);
  checks_.OnTrain(process_, 3, 1);
  checks_.OnPush(process_, PushOf(2, 3));
  EXPECT_FALSE(failed());
}

TEST_F(WorkerChecksTest, AStepThatDoesNotOverflowHasAGradient) {
  checks_.OnTrain(process_, 3, 1);
  proto::Push push = PushOf(1, 3);
  push.set_skip(true);
  checks_.OnPush(process_, push);
  EXPECT_TRUE(failed());
}

TEST_F(WorkerChecksTest, StepsBelongToTheJobThatTheWorkerPrepared) {
  job_.AddTimeline(1);
  const Workload next = {};
  job_.Replace({&next, &sums_});
  job_.AddTimeline(2);
  proto::WorkerOrder order;
  order.mutable_lease()->set_timeline(1);
  checks_.OnOrder(process_, order);
  EXPECT_FALSE(failed());
  order.mutable_lease()->set_timeline(2);
  checks_.OnOrder(process_, order);
  EXPECT_TRUE(failed());
}

TEST_F(WorkerChecksTest, AnEvaluationIsOfOneCut) {
  const std::vector<float> cut = {sums_.Below(4, 0, 0)};
  EXPECT_EQ(checks_.OnEvaluate({&workload_, &sums_}, cut), 4u);
  EXPECT_FALSE(failed());
  const std::vector<float> between = {cut[0] + 0.5f};
  EXPECT_EQ(checks_.OnEvaluate({&workload_, &sums_}, between), 0u);
  EXPECT_TRUE(failed());
}

}  // namespace
}  // namespace shoal
