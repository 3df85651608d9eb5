// A StepScheduler whose steps come in rounds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "coordinator/steps/round_rule.h"
#include "tests/coordinator/steps/step_scheduler_fixture.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// Rounds of 4 steps, in epochs of 10.
class RoundSchedulerTest : public StepSchedulerTest {
 protected:
  void Begin(uint64_t base = 0, const std::vector<uint64_t>& done_after_base = {}) {
    scheduler_.Open({.timeline = kOpenTimeline,
                     .total_steps = 20,
                     .base = base,
                     .done_after_base = done_after_base,
                     .rule = std::make_unique<RoundRule>(rounds_),
                     .rounds = rounds_});
    scheduler_.Begin();
  }

  // Joins a worker whose time for a step is known.
  Worker& JoinOfPace(int index, double step_seconds) {
    Worker& worker = workers_.Join(index);
    worker.step_seconds = step_seconds;
    worker.steps_done = 10;
    return worker;
  }

  const RoundPlan rounds_{StepPlan(10, 1, 2, 0), 4};
};

TEST_F(RoundSchedulerTest, ALeaseSaysItsRound) {
  Worker& worker = workers_.Join(0);
  Begin(8);
  OfferAll();
  const auto orders = workers_.Orders(0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].lease().first(), 8u);
  EXPECT_EQ(orders[0].lease().round().first(), 8u);
  EXPECT_EQ(orders[0].lease().round().count(), 2u) << "the epoch ends";
  EXPECT_EQ(orders[0].lease().round().number(), 2u);
  Report(worker, {8, 9});
  EXPECT_EQ(workers_.Orders(0)[0].lease().round().number(), 3u);
}

TEST_F(RoundSchedulerTest, WorkersShareARoundAndWaitForItsEnd) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(2, 3));
  Report(second, {2, 3});
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
  Report(first, {0, 1});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(4, 5)) << "who was there first";
  EXPECT_THAT(workers_.Leases(0), ElementsAre(6, 7));
}

TEST_F(RoundSchedulerTest, AWorkerThatWaitedForARoundIsNotSlow) {
  Worker& first = workers_.Join(0);
  Worker& second = workers_.Join(1);
  Begin();
  OfferAll();
  Report(second, {2});
  Report(second, {3});
  EXPECT_EQ(second.step_seconds, 0.2);
  const auto leased_twice = [&] { return scheduler_.steps().Holds(second.key, 0); };
  for (int i = 0; i < 2000 && !leased_twice(); ++i) loop_.Advance(milliseconds(1));
  ASSERT_TRUE(leased_twice());
  Report(second, {0});
  EXPECT_NEAR(second.step_seconds, 0.2, 1e-3);
  Report(first, {1});
}

// Rounds of 4: 3 and 1 take 0.6 s with a worker of a third of the speed, 2 and 2 take 1.2 s.
TEST_F(RoundSchedulerTest, ASlowWorkerGetsWhatDoesNotHoldTheRoundUp) {
  Worker& slow = JoinOfPace(0, 0.6);
  Worker& fast = JoinOfPace(1, 0.2);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0)) << "though it is the first in line";
  EXPECT_THAT(workers_.Leases(1), ElementsAre(1, 2));
  Report(fast, {1});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(3));
  Report(fast, {2});
  Report(fast, {3}, milliseconds(200));
  Report(slow, {0}, milliseconds(0));
  EXPECT_THAT(workers_.Leases(0), ElementsAre(4));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(5, 6)) << "who was passed over kept its place";
}

TEST_F(RoundSchedulerTest, ATooSlowWorkerIsTriedAgainAfterAWhile) {
  Worker& slow = JoinOfPace(0, 2.0);
  Worker& fast = JoinOfPace(1, 0.2);
  Begin();
  OfferAll();
  EXPECT_THAT(workers_.Leases(0), IsEmpty());
  Report(fast, {0, 1});
  slow.last_report = loop_.Now() - seconds(101);
  workers_.Leases(1);
  Report(fast, {2, 3});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(4));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(5, 6));
  EXPECT_NEAR(slow.step_seconds, 2, 1e-9);
  Report(slow, {4}, milliseconds(100));
  EXPECT_NEAR(slow.step_seconds, 0.1, 1e-9) << "that is what it is now";
  EXPECT_THAT(workers_.Leases(0), ElementsAre(7));
}

TEST_F(RoundSchedulerTest, AWorkerThatStandsStillGetsNoneOfTheNextRound) {
  Worker& stopped = workers_.Join(0);
  Worker& other = workers_.Join(1);
  Begin();
  OfferAll();
  workers_.Leases(1);
  Report(other, {2});
  Report(other, {3});
  EXPECT_THAT(workers_.Leases(1), IsEmpty());
  loop_.Advance(milliseconds(100));
  EXPECT_THAT(workers_.Leases(1), IsEmpty()) << "500 ms are not three times 200";
  loop_.Advance(seconds(1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(0)) << "which nobody had to ask for";
  Report(other, {0});
  EXPECT_THAT(workers_.Leases(1), ElementsAre(1)) << "which the other has not begun";
  Report(other, {1});
  EXPECT_THAT(workers_.Leases(0), ElementsAre(0, 1));
  EXPECT_THAT(workers_.Leases(1), ElementsAre(4, 5));
  // It is there again, and has done in vain what it had.
  loop_.Advance(seconds(1));
  scheduler_.OnReport(stopped, 2);
  EXPECT_FALSE(scheduler_.Done(stopped, 0));
  EXPECT_FALSE(scheduler_.Done(stopped, 1));
  scheduler_.Offer(stopped);
  scheduler_.ServeQueue();
  EXPECT_THAT(workers_.Leases(0), ElementsAre(6, 7));
}

TEST_F(RoundSchedulerTest, ACutWaitsForTheRestOfItsRound) {
  Worker& worker = workers_.Join(0);
  Begin();
  EXPECT_EQ(scheduler_.CutTarget(), 0u) << "nothing is leased";
  OfferAll();
  EXPECT_EQ(scheduler_.CutTarget(), 4u);
  EXPECT_EQ(scheduler_.KeepableBelow(), 0u);
  Report(worker, {0, 1});
  EXPECT_EQ(scheduler_.KeepableBelow(), 0u) << "no checkpoint has half a round";
  Report(worker, {2, 3});
  EXPECT_EQ(scheduler_.KeepableBelow(), 4u);
}

TEST_F(RoundSchedulerTest, WhereNobodyIsLeftACutIsBeforeTheRoundThatIsNotWhole) {
  Begin(5, {7});
  EXPECT_EQ(scheduler_.CutTarget(), 4u);
  workers_.Join(0);
  EXPECT_EQ(scheduler_.CutTarget(), 8u);
}

}  // namespace
}  // namespace shoal
