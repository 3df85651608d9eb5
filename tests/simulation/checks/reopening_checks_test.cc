#include "tests/simulation/checks/reopening_checks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "proto/coordinator.pb.h"

namespace shoal {
namespace {

class ReopeningChecksTest : public testing::Test {
 protected:
  ReopeningChecksTest() {
    workload_.faults = {{.kind = Fault::Kind::kNewCertificates, .task = "worker0"}};
  }

  // Worker 0 begins step 5 and reads its chunks as they arrive. Then worker 1 begins it.
  void BeginTwice() {
    checks_.OnTrain(processes_[0], 5, 1);
    checks_.OnTrain(processes_[0], 5, 2);
    EXPECT_FALSE(failed());
    checks_.OnTrain(processes_[1], 5, 2);
  }
  bool failed() const { return world_.failure().has_value(); }

  World world_{1, /*tracing=*/false};
  Workload workload_;
  const SimulatedProcess processes_[2] = {
      SimulatedProcess({.world = &world_, .name = "worker0#1", .host = "worker0"}),
      SimulatedProcess({.world = &world_, .name = "worker1#1", .host = "worker1"})};
  const TrainedJob job_{SimulatedJob{.workload = &workload_}};
  ReopeningChecks checks_{&world_, &job_};
};

TEST_F(ReopeningChecksTest, NoStepIsComputedTwice) {
  BeginTwice();
  EXPECT_TRUE(failed());
}

TEST_F(ReopeningChecksTest, AWorkerDoesNotBeginAStepAnew) {
  checks_.OnTrain(processes_[0], 0, 2);
  EXPECT_FALSE(failed());
  checks_.OnTrain(processes_[0], 0, 2);
  EXPECT_TRUE(failed());
}

TEST_F(ReopeningChecksTest, OtherFaultsMayCostSteps) {
  workload_.faults.push_back({.kind = Fault::Kind::kKill, .task = "worker0"});
  BeginTwice();
  EXPECT_FALSE(failed());
}

TEST_F(ReopeningChecksTest, AStreamThatEndsWithItsCertificateMayCostSteps) {
  workload_.faults[0].duration = std::chrono::milliseconds(10);
  BeginTwice();
  EXPECT_FALSE(failed());
}

TEST_F(ReopeningChecksTest, ASpeculatingStrategyComputesTwice) {
  workload_.job.strategy.speculate_after = 2;
  BeginTwice();
  EXPECT_FALSE(failed());
}

TEST_F(ReopeningChecksTest, ALostTimelineCostsSteps) {
  proto::WorkerReport report;
  report.mutable_timeline_lost();
  checks_.OnReport(report);
  BeginTwice();
  EXPECT_FALSE(failed());
}

TEST_F(ReopeningChecksTest, NoWorkerIsLostBeforeTheEnd) {
  using State = Membership::Record::State;
  checks_.AfterCallback({{0, {.state = State::kUp}}, {1, {.state = State::kPreparing}}});
  EXPECT_FALSE(failed());
  proto::WorkerOrder order;
  order.mutable_job_done();
  checks_.OnOrder(order);
  checks_.AfterCallback({{0, {.state = State::kLost}}});
  EXPECT_FALSE(failed());
}

TEST_F(ReopeningChecksTest, ALostWorkerFails) {
  checks_.AfterCallback({{0, {.state = Membership::Record::State::kLost}}});
  EXPECT_TRUE(failed());
}

}  // namespace
}  // namespace shoal
