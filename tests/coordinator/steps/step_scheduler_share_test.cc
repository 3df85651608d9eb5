// Workers share the steps that the rule and the limit let out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "coordinator/steps/staleness_bound.h"
#include "tests/coordinator/steps/step_scheduler_fixture.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(StepSchedulerTest, WorkersShareTheStepsThatTheRuleLetsOut) {
  workers_.Join(0);
  workers_.Join(1);
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(1));
}

TEST_F(StepSchedulerTest, AStreamWithoutAHelloHasNoShare) {
  workers_.Join(0);
  workers_.Connect(1);
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
}

TEST_F(StepSchedulerTest, AWorkerThatMayHaveNoStepsHasNoShare) {
  workers_.Join(0);
  workers_.Join(1).ready = false;
  workers_.Join(2).lost_timeline = true;
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(2), IsEmpty());
}

TEST_F(StepSchedulerTest, AWorkerThatDrainsGivesUpItsShare) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  scheduler_.Open(
      {.timeline = kOpenTimeline, .total_steps = 100, .rule = std::make_unique<StalenessBound>(1)});
  scheduler_.Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0));
  second.ready = false;
  Report(second, {1});
  Report(first, {0});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(2, 3));
}

// Below the limit there are fewer than are wanted.
TEST_F(StepSchedulerTest, WorkersTakeTurnsWhereThereAreTooFewSteps) {
  workers_.Join(0);
  workers_.Join(1);
  Begin();
  std::vector<std::vector<uint64_t>> got(2);
  for (uint64_t limit = 1; limit <= 4; ++limit) {
    scheduler_.steps().set_limit(limit);
    OfferAll();
    for (int i : {0, 1}) {
      for (const uint64_t step : workers_.Leases(i)) got[i].push_back(step);
    }
  }
  EXPECT_THAT(got[0], ElementsAre(0, 2));
  EXPECT_THAT(got[1], ElementsAre(1, 3));
}

}  // namespace
}  // namespace shoal
