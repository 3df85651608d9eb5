// A revocation takes the steps back that no worker has begun.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/steps/step_scheduler_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;

TEST_F(StepSchedulerTest, StepsNotBegunAreRevokedOnceAllHaveReported) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  workers_.Orders(0);
  workers_.Orders(1);
  EXPECT_FALSE(scheduler_.Revoke());
  EXPECT_TRUE(scheduler_.revoking());
  const auto halts = workers_.Orders(0);
  ASSERT_EQ(halts.size(), 1u) << "once";
  EXPECT_EQ(halts[0].halt().timeline(), kOpenTimeline);
  EXPECT_TRUE(scheduler_.OnHalted(first, Halted(1)));
  EXPECT_FALSE(scheduler_.OnHalted(first, Halted(1))) << "again";
  EXPECT_FALSE(scheduler_.Revoke());
  EXPECT_TRUE(scheduler_.OnHalted(second, Halted(2)));
  EXPECT_TRUE(scheduler_.Revoke());
  EXPECT_FALSE(scheduler_.revoking());
  EXPECT_EQ(scheduler_.steps().first_unleased(), 1u) << "only step 0 was begun";
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].resume().below(), 1u);
}

TEST_F(StepSchedulerTest, AWorkerThatDoesNotReportKeepsItsSteps) {
  workers_.Join(0);
  Begin();
  OfferAll();
  EXPECT_FALSE(scheduler_.Revoke());
  loop_.Advance(seconds(1));
  EXPECT_TRUE(scheduler_.Revoke());
  EXPECT_EQ(scheduler_.steps().first_unleased(), 2u);
}

TEST_F(StepSchedulerTest, NobodyWaitsForAWorkerThatIsGone) {
  workers_.Join(0);
  Begin();
  OfferAll();
  EXPECT_FALSE(scheduler_.Revoke());
  workers_.Break(0);
  EXPECT_TRUE(scheduler_.Revoke());
}

// Its stream broke before it was told what it may do.
TEST_F(StepSchedulerTest, AReturningWorkerHearsWhatIsLeftAfterARevocation) {
  workers_.Join(0);
  Begin();
  OfferAll();
  scheduler_.Revoke();
  scheduler_.OnHalted(*workers_.Find(0), Halted(1));
  ASSERT_TRUE(scheduler_.Revoke());
  workers_.Break(0);
  proto::WorkerHello hello;
  hello.set_timeline(kOpenTimeline);
  for (const uint64_t step : {0, 1}) hello.add_held_steps(step);
  Worker& again = workers_.Join(0, hello);
  scheduler_.Hold(again);
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].resume().below(), 1u);
  EXPECT_TRUE(scheduler_.steps().Holds(again.key, 0));
  EXPECT_FALSE(scheduler_.steps().Holds(again.key, 1));
}

}  // namespace
}  // namespace shoal
