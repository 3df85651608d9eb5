// A PsFleet that leads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/term.h"
#include "common/base/version.h"
#include "coordinator/takeover/ps_fleet.h"
#include "tests/coordinator/takeover/ps_fleet_fixture.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(PsFleetTest, ProbesEverySecond) {
  Lead();
  loop_.Advance(milliseconds(3500));
  for (int i = 0; i < kPsCount; ++i) {
    const auto probes = ps(i).Take<proto::ControlRequest>();
    EXPECT_EQ(probes.size(), 3u);
    for (const proto::ControlRequest& probe : probes) EXPECT_EQ(probe.term(), fleet_->term());
  }
}

TEST_F(PsFleetTest, AProbesAnswerKeepsTheNumbersFresh) {
  done_below_ = 12;
  Lead();
  EXPECT_THAT(applied_, IsEmpty()) << "of a timeline only";
  loop_.Advance(seconds(1));
  AnswerClaim(1, {.timeline = fleet_->timeline(), .base = 11});
  EXPECT_EQ(fleet_->peer(1).claimed->base(), 11u);
  EXPECT_THAT(applied_, ElementsAre("ps 1 has 11 of 12"));
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, AClaimSaysHowManyExamplesThereAre) {
  Lead();
  training_examples_ = 200;
  fleet_->SendExamples();
  for (int i = 0; i < kPsCount; ++i) {
    const auto told = ps(i).Take<proto::ControlRequest>();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].claim().training_examples(), 200u);
  }
}

TEST_F(PsFleetTest, FencedOffByANewerTermItFails) {
  Lead();
  RejectTerm(1, MakeTerm(8, 0xbad));
  const auto events = TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0],
              AllOf(HasSubstr("failed: fenced off by term " + TermText(MakeTerm(8, 0xbad))),
                    HasSubstr(TermText(fleet_->term()))));
  loop_.Advance(seconds(5));
  EXPECT_EQ(network_.opened().size(), size_t{kPsCount}) << "it leaves the ps alone";
  EXPECT_TRUE(ps(0).gone());
}

TEST_F(PsFleetTest, TheCoordinatorThatFencedItOffIsNamed) {
  const auto names_ada = AllOf(HasSubstr("failed: fenced off"), HasSubstr("ada:2222"),
                               HasSubstr("host-of-ada"), HasSubstr("pid 7"));
  Lead();
  proto::ControlReply reply;
  reply.mutable_term_rejected()->set_promised_term(MakeTerm(8, 1));
  *reply.mutable_term_rejected()->mutable_claimant() = Ada();
  ps(1).Send(reply);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(names_ada));

  Lead();
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  reply.mutable_hello()->set_incarnation(10);
  reply.mutable_hello()->set_promised_term(MakeTerm(8, 1));
  reply.mutable_hello()->set_version(kVersion);
  *reply.mutable_hello()->mutable_claimant() = Ada();
  ps(0).Send(reply);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(names_ada));
}

TEST_F(PsFleetTest, FencedOffByAHelloItFailsToo) {
  Lead();
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SendHello(0, {.incarnation = 10, .promised = MakeTerm(8, 1)});
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("failed: fenced off")));
}

TEST_F(PsFleetTest, APsThatComesBackWithItsVariablesIsNoLoss) {
  Lead();
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SendHello(0, {.incarnation = 10, .promised = fleet_->term()});
  EXPECT_THAT(TakeEvents(), ElementsAre("reconnected 0"));
  AnswerClaim(0, {.timeline = fleet_->timeline(), .base = 3});
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
}

// Answers to anything but a probe may be lost with the stream.
TEST_F(PsFleetTest, AStreamWithAnOldCertificateIsReopenedWhileNothingIsAwaited) {
  const auto is_reopened = [this] {
    ps(0).SayOutdated();
    loop_.RunUntilIdle();
    return ps(0).finished().has_value();
  };
  Start();
  SendHello(0, {.incarnation = 10});
  EXPECT_FALSE(is_reopened()) << "it claims";
  SendHello(1, {.incarnation = 11});
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  EXPECT_FALSE(is_reopened()) << "the ps loads";
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  is_cutting_ = true;
  EXPECT_FALSE(is_reopened());
  fleet_->ReopenOldStreams();
  EXPECT_FALSE(ps(0).finished().has_value());
  is_cutting_ = false;
  fleet_->ReopenOldStreams();
  loop_.RunUntilIdle();
  EXPECT_TRUE(ps(0).finished().has_value());
  TakeEvents();
  ps(0).Close(absl::OkStatus());
  loop_.RunUntilIdle();
  SendHello(0, {.incarnation = 10, .promised = fleet_->term()});
  EXPECT_THAT(TakeEvents(), ElementsAre("reconnected 0"));
  AnswerClaim(0, {.timeline = fleet_->timeline()});
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
}

TEST_F(PsFleetTest, APsWhoseStreamIsBeingReopenedIsDismissedToo) {
  Lead();
  ps(0).SayOutdated();
  loop_.RunUntilIdle();
  fleet_->Dismiss();
  ps(0).Close(absl::OkStatus());
  loop_.RunUntilIdle();
  SendHello(0, {.incarnation = 10, .promised = fleet_->term()});
  const auto sent = ps(0).Take<proto::ControlRequest>();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_TRUE(sent[0].has_claim());
  EXPECT_TRUE(sent[1].has_stop());
}

TEST_F(PsFleetTest, APsStartedAnewStartsAllOverUnderAFreshTerm) {
  Lead();
  const StoredCheckpoint checkpoint = WriteSmallCheckpoint(&store_, fleet_->timeline(), 40);
  const uint64_t timeline = fleet_->timeline();
  ps(1).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  ps(0).Take<proto::ControlRequest>();
  SendHello(1, {.incarnation = 99});
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("over: "), HasSubstr("ps 1"))));
  EXPECT_EQ(fleet_->timeline(), 0u);
  AnswerClaim(0, {.timeline = timeline, .base = 55});
  AnswerClaim(1);
  for (int i = 0; i < kPsCount; ++i) {
    EXPECT_EQ(TakeLoad(i).load().checkpoint(), checkpoint.directory);
    AnswerLoaded(i, fleet_->term());
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_GT(opened_.back().timeline, timeline);
  EXPECT_EQ(opened_.back().base, 40u);
}

TEST_F(PsFleetTest, AnUnexpectedTimelineStartsAllOverToo) {
  Lead();
  loop_.Advance(seconds(1));
  AnswerClaim(0, {.timeline = 0});
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("over: ps 0 is in timeline ")));
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
}

TEST_F(PsFleetTest, SendsWithItsTermAndPassesAnswersOn) {
  Lead();
  proto::ControlRequest request;
  request.mutable_fence()->set_cut_step(5);
  fleet_->Broadcast(request);
  fleet_->Send(1, request);
  EXPECT_EQ(ps(0).Take<proto::ControlRequest>().size(), 1u);
  const auto sent = ps(1).Take<proto::ControlRequest>();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].term(), fleet_->term());
  EXPECT_EQ(sent[1].fence().cut_step(), 5u);
  proto::ControlReply reply;
  reply.mutable_fence_accepted()->set_cut_step(5);
  ps(1).Send(reply);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("reply 1 5"));
}

// A ps takes no command on a stream that has not claimed it. Usually the hello brings the claim.
TEST_F(PsFleetTest, ACommandOnAnUnclaimedStreamComesAfterAClaim) {
  Lead();
  const auto restart = [this](uint64_t incarnation) {
    ps(1).Close(absl::UnavailableError("reset"));
    loop_.Advance(seconds(1));
    SendHello(1, {.incarnation = incarnation});
  };
  restart(99);
  AnswerClaim(0);
  AnswerClaim(1);
  ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
  restart(100);
  ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  ASSERT_THAT(ps(1).Take<proto::ControlRequest>(), IsEmpty()) << "the next claim has its pause";
  ps(0).Take<proto::ControlRequest>();
  fleet_->Dismiss();
  const auto sent = ps(1).Take<proto::ControlRequest>();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_TRUE(sent[0].has_claim());
  EXPECT_TRUE(sent[1].has_stop());
  EXPECT_EQ(sent[0].term(), sent[1].term());
  const auto claimed_before = ps(0).Take<proto::ControlRequest>();
  ASSERT_EQ(claimed_before.size(), 1u);
  EXPECT_TRUE(claimed_before[0].has_stop());
}

TEST_F(PsFleetTest, AFreshTermInOfficeKeepsTheTimeline) {
  Lead();
  const uint64_t timeline = fleet_->timeline(), term = fleet_->term();
  fleet_->RenewTerm();
  EXPECT_GT(fleet_->term(), term);
  EXPECT_EQ(fleet_->timeline(), timeline);
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = 7});
  RejectTerm(0, fleet_->term());  // the answer to something sent under the former one
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  // The next timeline has a term of its own again.
  loop_.Advance(seconds(1));
  const uint64_t renewed = fleet_->term();
  AnswerClaim(0);
  EXPECT_GT(fleet_->term(), renewed);
}

TEST_F(PsFleetTest, NothingHappensAfterClose) {
  Lead();
  fleet_->Close();
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), size_t{kPsCount});
  EXPECT_TRUE(ps(0).gone());
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, MayBeDestroyedWhileTheStoreIsRead) {
  loop_.set_hold_offloads(true);
  Start();
  DestroyFleet();
  loop_.set_hold_offloads(false);
  loop_.Advance(seconds(10));
  EXPECT_THAT(network_.opened(), IsEmpty());
}

}  // namespace
}  // namespace shoal
