#include "coordinator/takeover/ps_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "tests/coordinator/takeover/ps_fleet_fixture.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- Claiming ------------------------------------------------------------------------------------

TEST_F(PsFleetTest, ClaimsEveryPsUnderOneFreshTerm) {
  Start();
  EXPECT_EQ(fleet_->term(), MakeTerm(1, kCoordinator));
  SendHello(0);
  SendHello(1);
  for (int i = 0; i < kPsCount; ++i) {
    const auto requests = ps(i).Take<proto::ControlRequest>();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_TRUE(requests[0].has_claim());
    EXPECT_EQ(requests[0].claim().version(), kVersion);
    EXPECT_EQ(requests[0].term(), MakeTerm(1, kCoordinator));
  }
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, ItsTermIsAboveEveryStoredTimeline) {
  WriteSmallCheckpoint(&store_, MakeTerm(7, 999), 20);
  WriteSmallCheckpoint(&store_, MakeTerm(3, 1), 40);
  Start();
  EXPECT_EQ(fleet_->term(), MakeTerm(8, kCoordinator));
}

TEST_F(PsFleetTest, WaitsForEveryPs) {
  Start();
  SendHello(0);
  AnswerClaim(0);
  loop_.Advance(seconds(30));
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, ItsWaitingLinesNameThePs) {
  Start();
  SendHello(0);
  loop_.Advance(seconds(4));
  EXPECT_THAT(fleet_->Waiting(), ElementsAre("ps 0 at ps-0:1: has not answered the claim for 4 s",
                                             "ps 1 at ps-1:1: not reachable for 4 s (connecting)"));
  ps(1).Close(absl::UnavailableError("ps-1:1: connection refused"));  // as gRPC's network says it
  loop_.RunUntilIdle();
  AnswerClaim(0);
  EXPECT_THAT(fleet_->Waiting(),
              ElementsAre("ps 1 at ps-1:1: not reachable for 4 s (connection refused)"));
  loop_.Advance(seconds(2));
  SendHello(1);
  loop_.set_hold_offloads(true);
  AnswerClaim(1);
  EXPECT_THAT(fleet_->Waiting(), ElementsAre("verifying checkpoints for 0 s"));
  loop_.set_hold_offloads(false);
  loop_.Advance(seconds(3));
  AnswerLoaded(0, fleet_->term());
  EXPECT_THAT(fleet_->Waiting(), ElementsAre("ps 1 at ps-1:1: loading its variables for 3 s"));
  AnswerLoaded(1, fleet_->term());
  EXPECT_THAT(fleet_->Waiting(), IsEmpty());
}

TEST_F(PsFleetTest, OutbidWhileClaimingItTakesAHigherTerm) {
  Start();
  SendHello(0);
  SendHello(1);
  RejectTerm(0, MakeTerm(6, 999));
  RejectTerm(1, MakeTerm(4, 999));
  EXPECT_EQ(fleet_->term(), MakeTerm(1, kCoordinator)) << "after a pause";
  loop_.Advance(milliseconds(20 + kCoordinator));
  EXPECT_EQ(fleet_->term(), MakeTerm(7, kCoordinator));
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

// A stray Claim at a ps that knew of no term: there would be nothing above it before long.
TEST_F(PsFleetTest, ItWaitsForAnotherRunUntilThatIsSureToBeAlive) {
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0);
  for (int second = 0; second < 12; ++second) {
    RejectClaim(1, 500);
    EXPECT_THAT(TakeEvents(), IsEmpty()) << second;
    EXPECT_THAT(fleet_->Waiting(),
                ElementsAre(AllOf(HasSubstr("ps 1 at ps-1:1"), HasSubstr("ada:2222"),
                                  HasSubstr("host-of-ada"), HasSubstr("pid 7"))));
    loop_.Advance(seconds(1));
  }
  RejectClaim(1, 500);
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("ps 1 at ps-1:1"), HasSubstr("ada:2222"),
                                              HasSubstr("host-of-ada"), HasSubstr("pid 7"),
                                              HasSubstr("/runs/ada"), HasSubstr("--take_over"))));
}

// Its coordinator was killed.
TEST_F(PsFleetTest, APsThatAnotherRunHasLeftIsClaimed) {
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0);
  for (int second = 0; second < 10; ++second) {
    RejectClaim(1, 1000 * second);
    loop_.Advance(seconds(1));
  }
  AnswerClaim(1);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(fleet_->Waiting(), testing::Not(testing::Contains(HasSubstr("ada:2222"))));
}

TEST_F(PsFleetTest, ARejectionOfAnEarlierClaimIsNoNews) {
  Start();
  SendHello(0);
  SendHello(1);
  const uint64_t first = fleet_->term();
  RejectTerm(0, MakeTerm(6, 999));
  loop_.Advance(seconds(1));
  RejectClaim(1, 500, first);
  EXPECT_THAT(fleet_->Waiting(), testing::Not(testing::Contains(HasSubstr("ada:2222"))));
}

TEST_F(PsFleetTest, ItsClaimsSayWhoItIsAndWhetherItLeads) {
  self_.set_run_id("ours");
  take_over_ = true;
  Start();
  SendHello(0);
  SendHello(1);
  const auto claim_of = [this] {
    const auto requests = ps(0).Take<proto::ControlRequest>();
    EXPECT_FALSE(requests.empty());
    return requests.empty() ? proto::Claim() : requests.back().claim();
  };
  const proto::Claim first = claim_of();
  EXPECT_EQ(first.claimant().run_id(), "ours");
  EXPECT_TRUE(first.take_over());
  EXPECT_FALSE(first.leads());
  loop_.Advance(seconds(1));
  AnswerClaim(0);
  AnswerClaim(1);
  ps(0).Take<proto::ControlRequest>();
  loop_.Advance(seconds(1));
  EXPECT_TRUE(claim_of().leads());
}

TEST_F(PsFleetTest, AtItsEndItLeavesThePsToAnybody) {
  Lead();
  const uint64_t term = fleet_->term();
  fleet_->Close();
  for (int i = 0; i < kPsCount; ++i) {
    const auto requests = ps(i).Take<proto::ControlRequest>();
    ASSERT_FALSE(requests.empty());
    EXPECT_TRUE(requests.back().has_resign());
    EXPECT_EQ(requests.back().term(), term);
    EXPECT_TRUE(ps(i).finished().has_value());
  }
}

// As after kill -9: whoever comes has to know that it may come back.
TEST_F(PsFleetTest, DestroyedItDoesNotResign) {
  Lead();
  DestroyFleet();
  EXPECT_THAT(ps(0).Take<proto::ControlRequest>(), IsEmpty());
}

TEST_F(PsFleetTest, ATermThatNoCoordinatorCameToIsNotOutbid) {
  Start();
  SendHello(0, {.promised = UINT64_MAX});
  EXPECT_THAT(
      TakeEvents(),
      ElementsAre(AllOf(HasSubstr("failed: ps 0 at ps-0:1 has promised the term 4294967295-"),
                        HasSubstr("restart that ps"))));
  loop_.Advance(seconds(5));
  EXPECT_EQ(fleet_->term(), MakeTerm(1, kCoordinator));
}

TEST_F(PsFleetTest, NorIsOneThatFarAboveItsOwn) {
  Start();
  SendHello(0);
  RejectTerm(0, MakeTerm(1 + kMaxTermsAhead, 1));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), MakeTerm(2 + kMaxTermsAhead, kCoordinator));
  RejectTerm(0, MakeTerm(3 + 2 * kMaxTermsAhead, 1));
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("failed: ps 0 at ps-0:1 has promised the term")));
}

TEST_F(PsFleetTest, TermsNeverWrap) {
  WriteSmallCheckpoint(&store_, MakeTerm(kMaxTermNumber - 1, 999), 20);
  Start();
  EXPECT_EQ(fleet_->term(), MakeTerm(kMaxTermNumber, kCoordinator));
  SendHello(0);
  RejectTerm(0, MakeTerm(kMaxTermNumber, kCoordinator + 1));
  loop_.Advance(seconds(1));
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("failed: there is no term above")));
  EXPECT_EQ(fleet_->term(), MakeTerm(kMaxTermNumber, kCoordinator));
}

TEST_F(PsFleetTest, ACheckpointAboveWhichThereIsNoTermIsNamed) {
  WriteSmallCheckpoint(&store_, UINT64_MAX, 20);
  Start();
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("failed: "), HasSubstr("step-000000000020"),
                                              HasSubstr("move it away"))));
  EXPECT_THAT(network_.opened(), IsEmpty());
}

TEST_F(PsFleetTest, AHelloThatHasPromisedMoreIsOutbidToo) {
  Start();
  SendHello(0, {.promised = MakeTerm(9, 1)});
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), MakeTerm(10, kCoordinator));
}

TEST_F(PsFleetTest, ARejectionOfAnOlderClaimOfItsOwnIsNoNews) {
  Start();
  SendHello(0);
  RejectTerm(0, MakeTerm(5, 1));
  loop_.Advance(seconds(1));
  const uint64_t term = fleet_->term();
  RejectTerm(0, MakeTerm(5, 1));
  RejectTerm(0, term);
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), term);
}

// Between a rejection and the next claim a ps may be started anew and accept the old claim: it is
// void.
TEST_F(PsFleetTest, AnOutbidClaimDoesNotCountAnyMore) {
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(1);
  RejectTerm(0, MakeTerm(6, 999));
  AnswerClaim(0);  // of the term that was rejected
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), MakeTerm(7, kCoordinator));
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
}

TEST_F(PsFleetTest, ATermRejectedWhileTheLockIsPendingNeverLeads) {
  TemporaryDirectory run;
  RunLock lock({.loop = &loop_, .files = RealFileSystem(), .directory = run.path() + "/.lease"});
  lock_ = &lock;
  loop_.set_hold_brief(true);
  Start();
  SendHello(0);
  SendHello(1);
  const uint64_t timeline = MakeTerm(1, 9);
  AnswerClaim(0, {.timeline = timeline});
  AnswerClaim(1, {.timeline = timeline});
  RejectTerm(0, MakeTerm(6, 999));
  loop_.set_hold_brief(false);
  loop_.RunUntilIdle();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), MakeTerm(7, kCoordinator));
  AnswerClaim(0, {.timeline = timeline});
  AnswerClaim(1, {.timeline = timeline});
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  DestroyFleet();  // before the lock
}

TEST_F(PsFleetTest, AnAnswerToAnEarlierTermDoesNotCount) {
  Start();
  SendHello(0);
  SendHello(1);
  proto::ControlReply stale;
  stale.mutable_claimed()->set_promised_term(fleet_->term());
  RejectTerm(0, MakeTerm(6, 999));
  loop_.Advance(seconds(1));
  AnswerClaim(0);
  ps(1).Send(stale);
  loop_.RunUntilIdle();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
}

TEST_F(PsFleetTest, AProcessOfAnotherIndexIsAMistakeInTheClusterSpec) {
  Start();
  SendHello(1, {.index = 0});
  EXPECT_THAT(TakeEvents(),
              ElementsAre(AllOf(HasSubstr("failed: the process at ps-1:1 says it is ps 0"),
                                HasSubstr("has ps 1 there"))));
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), size_t{kPsCount}) << "it gives up";
}

TEST_F(PsFleetTest, AnotherVersionIsNamed) {
  Start();
  SendHello(1, {.version = "9.8.7"});
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("ps 1 at ps-1:1"), HasSubstr("9.8.7"),
                                              HasSubstr(kVersion))));
}

// --- Adopting ------------------------------------------------------------------------------------

TEST_F(PsFleetTest, AdoptsTheTimelineThatAllAreIn) {
  const uint64_t timeline = MakeTerm(3, 9);
  WriteSmallCheckpoint(&store_, timeline, 40);
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0, {.timeline = timeline, .base = 50, .after_base = {52, 53, 57}});
  AnswerClaim(1, {.timeline = timeline, .base = 53, .after_base = {54, 57, 60}});
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  EXPECT_EQ(fleet_->timeline(), timeline);
  const PsFleet::Opened& opened = opened_[0];
  EXPECT_EQ(opened.timeline, timeline);
  EXPECT_TRUE(opened.adopted);
  EXPECT_EQ(opened.base, 50u);
  EXPECT_THAT(opened.done_after_base, ElementsAre(52, 57)) << "what is applied on both";
  EXPECT_EQ(opened.checkpoint, "");
  EXPECT_THAT(ps(0).Take<proto::ControlRequest>(), IsEmpty()) << "nothing is loaded";
}

// One that holds nothing trainable says that it has everything; nonsense costs neither time nor
// memory.
TEST_F(PsFleetTest, AdoptsAPsThatHasNothingToApply) {
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0, {.timeline = 5, .base = 0, .after_base = {UINT64_MAX}});
  AnswerClaim(1, {.timeline = 5, .base = UINT64_MAX, .after_base = {}});
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].base, 0u);
  EXPECT_THAT(opened_[0].done_after_base, IsEmpty());
}

TEST_F(PsFleetTest, APsOfAnotherJobIsRejectedWithBothFingerprints) {
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0);
  AnswerClaim(1, {.timeline = 5, .job = 0xabcdef01});
  EXPECT_THAT(TakeEvents(),
              ElementsAre(AllOf(HasSubstr("ps 1 at ps-1:1"), HasSubstr("another job"),
                                HasSubstr("abcdef01"), HasSubstr(ChecksumText(JobFingerprint())))));
}

}  // namespace
}  // namespace shoal
