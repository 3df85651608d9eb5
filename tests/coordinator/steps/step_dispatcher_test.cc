#include "coordinator/steps/step_dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/coordinator/steps/dispatched_workers.h"

namespace shoal {

bool operator==(const StepRun& a, const StepRun& b) {
  return a.first == b.first && a.count == b.count;
}
void PrintTo(const StepRun& run, std::ostream* out) {
  *out << "[" << run.first << ", " << run.first + run.count << ")";
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(StepDispatcherTest, LeasesTheLowestStepsInOrder) {
  StepDispatcher steps = MakeDispatcher(5);
  EXPECT_EQ(steps.Take(kAnn, 2, kNow), (StepRun{0, 2}));
  EXPECT_EQ(steps.Take(kBob, 1, kNow), (StepRun{2, 1}));
  EXPECT_EQ(steps.first_unleased(), 3u);
  EXPECT_EQ(steps.Take(kAnn, 10, kNow), (StepRun{3, 2}));
  EXPECT_EQ(steps.Take(kBob, 10, kNow).count, 0u);
  EXPECT_EQ(steps.held(kAnn), 4u);
  EXPECT_EQ(steps.held(kBob), 1u);
  EXPECT_EQ(steps.leased_count(), 5u);
  EXPECT_EQ(steps.leased_again(), 0u);
}

TEST(StepDispatcherTest, TheWindowBoundsLeasesFromTheFirstUndoneStep) {
  StepDispatcher steps = MakeDispatcher(100, /*window=*/4);
  EXPECT_EQ(steps.Take(kAnn, 50, kNow), (StepRun{0, 4}));
  EXPECT_TRUE(steps.Done(kAnn, 2, kNow));
  EXPECT_EQ(steps.Take(kAnn, 50, kNow).count, 0u) << "step 0 is not done: the base stays";
  EXPECT_TRUE(steps.Done(kAnn, 0, kNow));
  EXPECT_EQ(steps.base(), 1u);
  EXPECT_EQ(steps.Take(kAnn, 50, kNow), (StepRun{4, 1}));
  EXPECT_TRUE(steps.Done(kAnn, 1, kNow));
  EXPECT_EQ(steps.base(), 3u) << "past step 2, done before";
  EXPECT_EQ(steps.Take(kAnn, 50, kNow), (StepRun{5, 2}));
}

TEST(StepDispatcherTest, TheLimitWithholdsSteps) {
  StepDispatcher steps = MakeDispatcher(10);
  steps.set_limit(3);
  EXPECT_EQ(steps.Take(kAnn, 8, kNow), (StepRun{0, 3}));
  EXPECT_EQ(steps.Take(kBob, 8, kNow).count, 0u);
  steps.set_limit(4);
  EXPECT_EQ(steps.Take(kBob, 8, kNow), (StepRun{3, 1}));
  // Open steps are withheld, too, when the limit falls.
  steps.Release(kAnn);
  steps.set_limit(1);
  EXPECT_EQ(steps.Take(kEve, 8, kNow), (StepRun{0, 1}));
  EXPECT_EQ(steps.Take(kEve, 8, kNow).count, 0u);
}

TEST(StepDispatcherTest, ASecondWorkerGetsTheOldestStepThatIsOutForLong) {
  StepDispatcher steps = MakeDispatcher(20);
  const Time later = kNow + std::chrono::seconds(1);
  steps.Take(kAnn, 2, kNow);
  steps.Take(kBob, 2, later);
  const std::set<StepDispatcher::WorkerKey> of_ann = {kAnn};
  EXPECT_EQ(steps.TakeSecond(kBob, {}, later), std::nullopt) << "nobody is slow";
  EXPECT_EQ(steps.TakeSecond(kAnn, of_ann, later), std::nullopt) << "her own";
  EXPECT_EQ(steps.TakeSecond(kBob, of_ann, later), 0u);
  EXPECT_EQ(steps.TakeSecond(kEve, of_ann, later), 1u) << "two are at the one before it";
  EXPECT_EQ(steps.TakeSecond(kBob, of_ann, later), std::nullopt) << "no third time";
  EXPECT_EQ(steps.leased_twice(), 2u);
  EXPECT_EQ(steps.held(kBob), 3u);
  // Whoever is first counts.
  EXPECT_TRUE(steps.Done(kBob, 0, later));
  EXPECT_FALSE(steps.Done(kAnn, 0, later));
  EXPECT_EQ(steps.held(kAnn), 1u);
  EXPECT_EQ(steps.base(), 1u);
}

TEST(StepDispatcherTest, AStepDoneByAnotherCountsUntilItsWorkerSaysSo) {
  StepDispatcher steps = MakeDispatcher(20);
  const Time later = kNow + std::chrono::seconds(1);
  const std::set<StepDispatcher::WorkerKey> anybody = {kAnn, kBob};
  EXPECT_EQ(steps.WorkloadOf(kAnn).steps, 0u);
  steps.Take(kAnn, 2, kNow);
  ASSERT_EQ(steps.TakeSecond(kBob, anybody, later), 0u);
  steps.Done(kBob, 0, later);
  EXPECT_EQ(steps.held(kAnn), 1u);
  EXPECT_EQ(steps.WorkloadOf(kAnn).steps, 2u);
  EXPECT_EQ(steps.WorkloadOf(kBob).steps, 0u);
  steps.Done(kBob, 1, later);
  steps.Take(kBob, 1, later);
  EXPECT_EQ(steps.TakeSecond(kAnn, anybody, later), std::nullopt) << "she is late herself";
  steps.Take(kAnn, 1, later);
  EXPECT_EQ(steps.WorkloadOf(kAnn).steps, 3u);
  EXPECT_EQ(steps.WorkloadOf(kAnn).begun, kNow) << "of the first of them";
  const Time then = later + std::chrono::seconds(1);
  steps.Done(kAnn, 0, then);
  EXPECT_EQ(steps.WorkloadOf(kAnn).steps, 2u);
  EXPECT_EQ(steps.WorkloadOf(kAnn).begun, then);
  steps.Release(kAnn);
  EXPECT_EQ(steps.WorkloadOf(kAnn).steps, 0u);
}

TEST(StepDispatcherTest, StepsNeitherDoneNorLeasedAreCounted) {
  StepDispatcher steps = MakeDispatcher(20);
  steps.Take(kAnn, 3, kNow);
  steps.Take(kBob, 2, kNow);
  steps.Done(kAnn, 0, kNow);
  steps.Done(kAnn, 2, kNow);
  EXPECT_EQ(steps.UnleasedBelow(8), 3u);
  steps.Release(kBob);
  EXPECT_EQ(steps.UnleasedBelow(8), 5u);
}

TEST(StepDispatcherTest, AStepOfTwoWorkersIsOpenWhenBothHaveLostIt) {
  StepDispatcher steps = MakeDispatcher(20);
  const Time later = kNow + std::chrono::seconds(1);
  for (const auto& [one, other] : {std::pair(kAnn, kBob), std::pair(kBob, kAnn)}) {
    const uint64_t step = steps.first_unleased();
    steps.Take(kAnn, 1, kNow);
    ASSERT_EQ(steps.TakeSecond(kBob, {kAnn}, later), step);
    steps.Release(one);
    EXPECT_TRUE(steps.Holds(other, step));
    EXPECT_EQ(steps.Take(kEve, 1, later), (StepRun{step + 1, 1})) << "the other one is at it";
    steps.Release(other);
    EXPECT_EQ(steps.Take(kEve, 1, later), (StepRun{step, 1}));
  }
}

TEST(StepDispatcherTest, AStepOfTwoWorkersIsNotRevoked) {
  StepDispatcher steps = MakeDispatcher(20);
  steps.Take(kAnn, 3, kNow);
  ASSERT_EQ(steps.TakeSecond(kBob, {kAnn}, kNow), 0u);
  steps.Revoke({{kAnn, 0}, {kBob, 0}});
  EXPECT_EQ(steps.first_unleased(), 1u);
  EXPECT_TRUE(steps.Holds(kAnn, 0));
}

// Rejects what lies beyond `end`, and says what it is told.
class ScriptedRule : public LeaseRule {
 public:
  explicit ScriptedRule(std::vector<std::string>* told) : told_(*told) {}
  uint64_t Span() const override { return 2; }
  bool MayLease(const Candidate& candidate) const override {
    return candidate.step < candidate.base + 2 || candidate.came_back;
  }
  void Leased(uint64_t step) override { told_.push_back(absl::StrCat("leased ", step)); }
  void Done(uint64_t step) override { told_.push_back(absl::StrCat("done ", step)); }

 private:
  std::vector<std::string>& told_;
};

TEST(StepDispatcherTest, TheStrategysRuleIsAskedAndTold) {
  std::vector<std::string> told;
  StepDispatcher steps({.total_steps = 20, .rule = std::make_unique<ScriptedRule>(&told)}, 0, {});
  EXPECT_EQ(steps.Take(kAnn, 5, kNow), (StepRun{0, 2}));
  EXPECT_TRUE(steps.Done(kAnn, 1, kNow));
  EXPECT_EQ(steps.Take(kAnn, 5, kNow).count, 0u);
  steps.Release(kAnn);
  EXPECT_EQ(steps.Take(kBob, 5, kNow), (StepRun{0, 1}));
  EXPECT_TRUE(steps.Done(kBob, 0, kNow));
  EXPECT_EQ(steps.Take(kBob, 5, kNow), (StepRun{2, 2}));
  steps.Revoke({{kBob, 3}});
  EXPECT_THAT(told, ElementsAre("leased 0", "leased 1", "done 1", "leased 0", "done 0", "leased 2",
                                "leased 3", "done 3"));
}

TEST(StepDispatcherTest, ReleasedStepsAreLeasedAgainFirst) {
  StepDispatcher steps = MakeDispatcher(20);
  steps.Take(kAnn, 3, kNow);
  steps.Take(kBob, 3, kNow);
  EXPECT_TRUE(steps.Done(kAnn, 1, kNow));
  EXPECT_EQ(steps.Release(kAnn), 2u);
  EXPECT_EQ(steps.Release(kAnn), 0u);
  EXPECT_EQ(steps.held(kAnn), 0u);
  // Runs of adjoining steps: 0 and 2 have step 1 between them.
  EXPECT_EQ(steps.Take(kEve, 5, kNow), (StepRun{0, 1}));
  EXPECT_EQ(steps.Take(kEve, 5, kNow), (StepRun{2, 1}));
  EXPECT_EQ(steps.leased_again(), 2u);
  EXPECT_EQ(steps.Take(kEve, 5, kNow), (StepRun{6, 5}));
}

TEST(StepDispatcherTest, ReleaseCountsOnlyTheStepsThatItOpens) {
  StepDispatcher steps = MakeDispatcher(20);
  steps.Take(kAnn, 2, kNow);
  EXPECT_EQ(steps.TakeSecond(kBob, {kAnn}, kNow), 0u);
  EXPECT_EQ(steps.Release(kAnn), 1u) << "Bob still holds step 0";
  EXPECT_EQ(steps.Take(kEve, 1, kNow), (StepRun{1, 1}));
  EXPECT_EQ(steps.Release(kBob), 1u);
  EXPECT_EQ(steps.Take(kEve, 1, kNow), (StepRun{0, 1}));
}

TEST(StepDispatcherTest, AnybodyMayReportAStepOnce) {
  StepDispatcher steps = MakeDispatcher(4);
  steps.Take(kAnn, 2, kNow);
  EXPECT_TRUE(steps.Done(kBob, 0, kNow)) << "leased to another";
  EXPECT_FALSE(steps.Done(kAnn, 0, kNow)) << "done already";
  EXPECT_EQ(steps.held(kAnn), 1u);
  EXPECT_TRUE(steps.Done(kEve, 3, kNow)) << "never leased here";
  EXPECT_FALSE(steps.Done(kEve, 3, kNow));
  EXPECT_FALSE(steps.Done(kEve, 4, kNow)) << "beyond the job";
  EXPECT_FALSE(steps.Done(kEve, UINT64_MAX, kNow));
  EXPECT_EQ(steps.done_count(), 2u);
  // Step 2, which the report jumped over, is still given.
  EXPECT_EQ(steps.Take(kEve, 4, kNow), (StepRun{2, 1}));
  EXPECT_EQ(steps.Take(kEve, 4, kNow).count, 0u);
}

// No lease reaches beyond the window, so no honest report does; a step from far away costs no
// memory.
TEST(StepDispatcherTest, AReportFromBeyondTheWindowIsDropped) {
  StepDispatcher steps = MakeDispatcher(uint64_t{1} << 60, /*window=*/16);
  EXPECT_FALSE(steps.Done(kEve, uint64_t{1} << 59, kNow));
  EXPECT_FALSE(steps.Done(kEve, 16, kNow));
  EXPECT_EQ(steps.first_unleased(), 0u);
  EXPECT_TRUE(steps.Done(kEve, 15, kNow));
}

TEST(StepDispatcherTest, AStepThatIsNotDoneAfterAllIsOpenAgain) {
  StepDispatcher steps = MakeDispatcher(10, /*window=*/4);
  EXPECT_EQ(steps.Take(kAnn, 4, kNow), (StepRun{0, 4}));
  for (const uint64_t step : {0, 1, 2}) EXPECT_TRUE(steps.Done(kAnn, step, kNow));
  EXPECT_EQ(steps.Take(kBob, 3, kNow), (StepRun{4, 3}));
  steps.Undo({0, 2});
  EXPECT_EQ(steps.base(), 0u);
  EXPECT_THAT(steps.done_after_base(), ElementsAre(1));
  EXPECT_EQ(steps.done_count(), 1u);
  EXPECT_TRUE(steps.Done(kBob, 6, kNow)) << "leased, though it is beyond the window now";
  EXPECT_EQ(steps.Take(kEve, 5, kNow), (StepRun{0, 1}));
  EXPECT_EQ(steps.Take(kEve, 5, kNow), (StepRun{2, 1}));
  EXPECT_EQ(steps.Take(kEve, 5, kNow).count, 0u);
  for (const uint64_t step : {0, 2, 3, 4, 5}) EXPECT_TRUE(steps.Done(kEve, step, kNow)) << step;
  EXPECT_EQ(steps.base(), 7u);
  steps.Undo({8});
  EXPECT_EQ(steps.base(), 7u) << "it was not done";
}

TEST(StepDispatcherTest, AReleasedStepThatIsReportedAfterAllIsNotLeasedAgain) {
  StepDispatcher steps = MakeDispatcher(3);
  steps.Take(kAnn, 3, kNow);
  steps.Release(kAnn);
  EXPECT_TRUE(steps.Done(kAnn, 1, kNow));
  EXPECT_EQ(steps.Take(kBob, 3, kNow), (StepRun{0, 1}));
  EXPECT_EQ(steps.Take(kBob, 3, kNow), (StepRun{2, 1}));
}

TEST(StepDispatcherTest, LeasesExpireUnlessTheirWorkerReports) {
  StepDispatcher steps = MakeDispatcher(10);
  steps.Take(kAnn, 2, kNow);
  steps.Take(kBob, 2, kNow);
  EXPECT_THAT(steps.Expire(kNow + kTimeout - Time(1)), IsEmpty());
  EXPECT_TRUE(steps.Done(kAnn, 0, kNow + kTimeout - Time(1)));
  EXPECT_THAT(steps.Expire(kNow + kTimeout), ElementsAre(kBob));
  EXPECT_THAT(steps.Expire(kNow + kTimeout), IsEmpty()) << "once";
  EXPECT_EQ(steps.Take(kEve, 2, kNow + kTimeout), (StepRun{2, 2}));
  EXPECT_THAT(steps.Expire(kNow + 2 * kTimeout - Time(1)), ElementsAre(kAnn));
  EXPECT_THAT(steps.Expire(kNow + 2 * kTimeout), ElementsAre(kEve));
}

TEST(StepDispatcherTest, TheClockOfALeaseStartsWhenItsWorkerHasNothingOlder) {
  StepDispatcher steps = MakeDispatcher(10);
  steps.Take(kAnn, 1, kNow);
  steps.Take(kAnn, 1, kNow + kTimeout / 2);  // queued behind the first: no new deadline
  EXPECT_THAT(steps.Expire(kNow + kTimeout), ElementsAre(kAnn));
  steps.Take(kAnn, 1, kNow + kTimeout);
  EXPECT_TRUE(steps.Done(kAnn, 0, kNow + kTimeout));
  steps.Take(kAnn, 1, kNow + 3 * kTimeout);  // after a rest
  EXPECT_THAT(steps.Expire(kNow + 4 * kTimeout - Time(1)), IsEmpty());
}

TEST(StepDispatcherTest, AReportOfAnotherWorkersStepRenewsOnlyTheReportersDeadline) {
  StepDispatcher steps = MakeDispatcher(10);
  steps.Take(kAnn, 2, kNow);
  steps.Take(kBob, 2, kNow);
  EXPECT_TRUE(steps.Done(kBob, 0, kNow + kTimeout / 2));
  EXPECT_THAT(steps.Expire(kNow + kTimeout), ElementsAre(kAnn));
}

TEST(StepDispatcherTest, StartsFromAnAppliedSetWithGaps) {
  StepDispatcher steps = MakeDispatcher(12, 1000, /*base=*/4, /*done=*/{5, 6, 9});
  EXPECT_EQ(steps.base(), 4u);
  EXPECT_EQ(steps.done_count(), 7u);
  EXPECT_EQ(steps.first_unleased(), 10u);
  EXPECT_EQ(steps.Take(kAnn, 9, kNow), (StepRun{4, 1}));
  EXPECT_EQ(steps.Take(kAnn, 9, kNow), (StepRun{7, 2}));
  EXPECT_EQ(steps.Take(kAnn, 9, kNow), (StepRun{10, 2}));
  EXPECT_FALSE(steps.Done(kAnn, 6, kNow));
  EXPECT_TRUE(steps.Done(kAnn, 4, kNow));
  EXPECT_EQ(steps.base(), 7u);
}

TEST(StepDispatcherTest, AnAppliedSetThatAdjoinsTheBaseRaisesIt) {
  StepDispatcher steps = MakeDispatcher(12, 1000, /*base=*/4, /*done=*/{4, 5});
  EXPECT_EQ(steps.base(), 6u);
  EXPECT_EQ(MakeDispatcher(6, 1000, 4, {4, 5}).finished(), true);
}

TEST(StepDispatcherTest, HoldKeepsWhatAWorkerHasAfterATakeover) {
  StepDispatcher steps = MakeDispatcher(20, /*window=*/10, /*base=*/2, /*done=*/{5});
  steps.Hold(kAnn, 7, kNow);   // beyond all that is known
  steps.Hold(kAnn, 3, kNow);   // in a gap
  steps.Hold(kBob, 7, kNow);   // Ann has it
  steps.Hold(kBob, 5, kNow);   // done
  steps.Hold(kBob, 1, kNow);   // done, below the base
  steps.Hold(kBob, 12, kNow);  // beyond the window
  steps.Hold(kBob, 20, kNow);  // beyond the job
  EXPECT_EQ(steps.held(kAnn), 2u);
  EXPECT_EQ(steps.held(kBob), 0u);
  EXPECT_EQ(steps.first_unleased(), 8u);
  EXPECT_EQ(steps.Take(kEve, 9, kNow), (StepRun{2, 1}));
  EXPECT_EQ(steps.Take(kEve, 9, kNow), (StepRun{4, 1}));
  EXPECT_EQ(steps.Take(kEve, 9, kNow), (StepRun{6, 1}));
  EXPECT_EQ(steps.Take(kEve, 9, kNow), (StepRun{8, 4}));
  EXPECT_THAT(steps.Expire(kNow + kTimeout), ElementsAre(kAnn, kEve))
      << "held steps expire as leases do";
  EXPECT_EQ(steps.Take(kBob, 9, kNow), (StepRun{2, 3}));
}

// Of what is handed back, only that which leaves no hole.
TEST(StepDispatcherTest, TakesBackWhatNobodyHasBegun) {
  StepDispatcher dispatcher({.total_steps = 100}, 10, {});
  dispatcher.Take(1, 2, kNow);  // 10, 11
  dispatcher.Take(2, 2, kNow);  // 12, 13
  dispatcher.Take(1, 2, kNow);  // 14, 15
  dispatcher.Take(2, 2, kNow);  // 16, 17
  dispatcher.Revoke({{1, 11}, {2, 14}});
  EXPECT_EQ(dispatcher.first_unleased(), 14u);
  EXPECT_EQ(dispatcher.held(1), 2u) << "11 is below 13, which the other has begun";
  EXPECT_EQ(dispatcher.held(2), 2u);
  EXPECT_EQ(dispatcher.leased_again(), 0u);
  EXPECT_EQ(dispatcher.Take(2, 1, kNow).first, 14u) << "as if it had never been leased";
}

TEST(StepDispatcherTest, TakesNothingBackFromWhoHasNotSaidHowFarItIs) {
  StepDispatcher dispatcher({.total_steps = 100}, 0, {});
  dispatcher.Take(1, 2, kNow);  // 0, 1
  dispatcher.Take(2, 2, kNow);  // 2, 3
  dispatcher.Take(1, 2, kNow);  // 4, 5
  dispatcher.Revoke({{1, 1}});
  EXPECT_EQ(dispatcher.first_unleased(), 4u);
  // What was done, or came back from a worker that is gone, may be begun somewhere, too.
  dispatcher.Take(1, 2, kNow);  // 4, 5
  dispatcher.Release(2);        // 2, 3
  dispatcher.Done(1, 5, kNow);
  dispatcher.Revoke({{1, 1}});
  EXPECT_EQ(dispatcher.first_unleased(), 6u);
  // Nor does what a ps says leave a hole.
  dispatcher.WasBegun(7);
  EXPECT_EQ(dispatcher.first_unleased(), 8u);
  dispatcher.WasBegun(1000);
  EXPECT_EQ(dispatcher.first_unleased(), 8u) << "the job has no such step";
}

// The rest of a round is needed anyway: who computes it need not begin again.
TEST(StepDispatcherTest, TakesWholesBack) {
  const auto end_of_four = [](uint64_t step) { return (step + 3) / 4 * 4; };
  StepDispatcher dispatcher({.total_steps = 100}, 0, {});
  dispatcher.Take(1, 10, kNow);  // 0 to 9
  dispatcher.Revoke({{1, 5}}, end_of_four);
  EXPECT_EQ(dispatcher.first_unleased(), 8u);
  EXPECT_EQ(dispatcher.held(1), 8u);
  dispatcher.Revoke({{1, 4}}, end_of_four);
  EXPECT_EQ(dispatcher.first_unleased(), 4u) << "of the next one nothing is begun";
  dispatcher.Take(1, 2, kNow);  // 4, 5
  dispatcher.Revoke({{1, 5}}, end_of_four);
  EXPECT_EQ(dispatcher.first_unleased(), 6u) << "no more than was leased";
}

// Whoever has it now, who had it before may have begun it.
TEST(StepDispatcherTest, TakesNothingBackThatCameBackOnce) {
  StepDispatcher dispatcher({.total_steps = 100}, 0, {});
  dispatcher.Take(1, 2, kNow);  // 0, 1
  dispatcher.Release(1);
  dispatcher.Take(2, 2, kNow);  // 0, 1
  dispatcher.Take(2, 2, kNow);  // 2, 3
  dispatcher.Revoke({{2, 1}});
  EXPECT_EQ(dispatcher.first_unleased(), 2u);
  EXPECT_EQ(dispatcher.held(2), 2u);
}

// It was reported, but a ps lacks it; others may have applied it.
TEST(StepDispatcherTest, TakesNothingBackThatWasUndone) {
  StepDispatcher dispatcher({.total_steps = 100}, 0, {});
  dispatcher.Take(1, 1, kNow);  // 0
  dispatcher.Done(1, 0, kNow);
  dispatcher.Undo({0});
  EXPECT_EQ(dispatcher.Take(2, 1, kNow), (StepRun{0, 1}));
  dispatcher.Revoke({{2, 0}});
  EXPECT_EQ(dispatcher.first_unleased(), 1u);
}

TEST(StepDispatcherTest, AWorkerThatGoesOnUnderAnotherKeyKeepsWhatItLists) {
  StepDispatcher steps = MakeDispatcher(10);
  EXPECT_EQ(steps.Take(kAnn, 4, kNow), (StepRun{0, 4}));
  EXPECT_EQ(steps.TakeSecond(kBob, {kAnn}, kNow), 0u);
  steps.Move(kAnn, kEve, {0, 2, 3, 7});
  EXPECT_EQ(steps.held(kAnn), 1u) << "it has not got step 1";
  EXPECT_EQ(steps.held(kEve), 3u) << "and step 7 was not its";
  EXPECT_EQ(steps.Release(kAnn), 1u);
  EXPECT_EQ(steps.Take(kBob, 9, kNow), (StepRun{1, 1}));
  EXPECT_THAT(steps.Expire(kNow + kTimeout), testing::UnorderedElementsAre(kBob, kEve))
      << "the deadline stays";
  EXPECT_EQ(steps.Take(kBob, 9, kNow), (StepRun{0, 4}));
}

TEST(StepDispatcherTest, AMovedSecondLeaseStaysOne) {
  StepDispatcher steps = MakeDispatcher(10);
  EXPECT_EQ(steps.Take(kAnn, 1, kNow), (StepRun{0, 1}));
  EXPECT_EQ(steps.TakeSecond(kBob, {kAnn}, kNow), 0u);
  steps.Move(kBob, kEve, {0});
  EXPECT_EQ(steps.Release(kBob), 0u);
  EXPECT_EQ(steps.Release(kAnn), 0u) << "the other still holds it";
  EXPECT_TRUE(steps.Holds(kEve, 0));
  EXPECT_EQ(steps.Release(kEve), 1u);
}

}  // namespace
}  // namespace shoal
