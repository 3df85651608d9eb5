// Streams, and rules 1 to 5 of the protocol.
#include "ps/parameter_server.h"

#include <gmock/gmock.h>

#include "common/base/crc32c.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "common/checkpoint/manifest.h"
#include "common/files/durable_file.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kTerm = uint64_t{1} << 32 | 5;
constexpr Time kGrace = std::chrono::seconds(20);

TEST_F(ParameterServerTest, HelloTellsWhoAndWhere) {
  proto::ServerHello hello;
  Client control = Connect(kControlMethod, &hello);
  EXPECT_EQ(hello.version(), kVersion);
  EXPECT_EQ(hello.promised_term(), 0u);
  EXPECT_EQ(hello.timeline(), 0u);
  LoadJob(control, kTerm);
  ASSERT_EQ(Ask(control, Claim(kTerm + 1)).kind_case(), proto::ControlReply::kClaimed);
  Connect(kExchangeMethod, &hello);
  EXPECT_EQ(hello.promised_term(), kTerm + 1);
  EXPECT_EQ(hello.timeline(), kTerm);
  EXPECT_EQ(server_->promised_term(), kTerm + 1);
  EXPECT_EQ(server_->timeline(), kTerm);
}

TEST_F(ParameterServerTest, HelloComesBeforeTheAnswerOfAQuickClient) {
  const auto received = std::make_shared<Received>();
  auto callbacks = server_->Accept(kControlMethod, std::make_unique<FakeStream>(received));
  callbacks->on_message(MakeMessage(Claim(kTerm)));
  loop_->RunUntilIdle();
  ASSERT_EQ(received->messages.size(), 2u);
  proto::ControlReply reply;
  ASSERT_TRUE(ParseMessage(received->messages[0], &reply));
  EXPECT_TRUE(reply.has_hello());
  ASSERT_TRUE(ParseMessage(received->messages[1], &reply));
  EXPECT_TRUE(reply.has_claimed());
}

TEST_F(ParameterServerTest, UnknownMethodIsRefusedByName) {
  const auto refused = server_->Accept("/shoal.proto.Coordinator/Work",
                                       std::make_unique<FakeStream>(std::make_shared<Received>()));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(refused.status().message(), HasSubstr("/shoal.proto.Coordinator/Work"));
}

TEST_F(ParameterServerTest, ClosedStreamIsForgotten) {
  Client control = ConnectControl();
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  EXPECT_TRUE(control.received->destroyed);
  control.callbacks.on_message(MakeMessage(Claim(kTerm)));
  EXPECT_EQ(server_->promised_term(), 0u);
}

TEST_F(ParameterServerTest, OtherVersionsAreRefusedNamingBoth) {
  Client worker = Connect(kExchangeMethod);
  proto::ExchangeRequest hello;
  hello.mutable_hello()->set_version("9.9.9");
  worker.callbacks.on_message(MakeMessage(hello));
  ASSERT_TRUE(worker.received->finished.has_value());
  EXPECT_EQ(worker.received->finished->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(worker.received->finished->message(), HasSubstr("9.9.9"));
  EXPECT_THAT(worker.received->finished->message(), HasSubstr(kVersion));

  Client control = ConnectControl();
  proto::ControlRequest claim = Claim(kTerm);
  claim.mutable_claim()->set_version("9.9.9");
  SendOnly(control, claim);
  EXPECT_EQ(control.received->finished->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server_->promised_term(), 0u);
}

TEST_F(ParameterServerTest, AWorkerOfOtherShardsIsRefused) {
  Client control = ConnectControl();
  const uint32_t fingerprint = shard_map_.Fingerprint();
  Client early = ConnectWorker(fingerprint ^ 1);  // before anybody knows the job
  LoadJob(control, kTerm);
  Client right = ConnectWorker(fingerprint);
  EXPECT_TRUE(Ask(right, Pull(kTerm, 0, 1)).has_values());
  Client wrong = ConnectWorker(fingerprint ^ 1);
  EXPECT_TRUE(Ask(wrong, Pull(kTerm - 1, 0, 1)).has_refused()) << "of another timeline, perhaps";
  EXPECT_FALSE(wrong.received->finished.has_value());
  wrong.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  ASSERT_TRUE(wrong.received->finished.has_value());
  EXPECT_EQ(wrong.received->finished->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(early.received->finished.has_value());
  early.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  ASSERT_TRUE(early.received->finished.has_value());
  EXPECT_EQ(early.received->finished->code(), absl::StatusCode::kFailedPrecondition);
}

// Of the same variables in the same shards: seed, loss, data or epochs are others.
TEST_F(ParameterServerTest, AWorkerOfAnotherJobIsRefused) {
  Client control = ConnectControl();
  job_fingerprint_ = job_.Fingerprint() ^ 1;
  Client early = ConnectWorker();  // before anybody knows the job
  LoadJob(control, kTerm);
  Client late = ConnectWorker();
  job_fingerprint_ = 0;
  Client silent = ConnectWorker();
  for (Client* wrong : {&early, &late, &silent}) {
    EXPECT_TRUE(Ask(*wrong, Pull(kTerm - 1, 0, 1)).has_refused()) << "of another timeline";
    EXPECT_FALSE(wrong->received->finished.has_value());
    wrong->callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
    ASSERT_TRUE(wrong->received->finished.has_value());
    EXPECT_EQ(wrong->received->finished->code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(wrong->received->finished->message()),
                HasSubstr(ChecksumText(job_.Fingerprint())));
  }
  job_fingerprint_ = job_.Fingerprint() ^ 1;
  Client pushing = ConnectWorker();
  proto::ExchangeRequest push;
  push.mutable_push()->set_timeline(kTerm);
  pushing.callbacks.on_message(MakeMessage(push));
  ASSERT_TRUE(pushing.received->finished.has_value());
  EXPECT_EQ(pushing.received->finished->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().highest_updates(), 0u);
  job_fingerprint_ = job_.Fingerprint();
  Client right = ConnectWorker();
  EXPECT_TRUE(Ask(right, Pull(kTerm, 0, 1)).has_values());
}

TEST_F(ParameterServerTest, NothingBeforeTheHello) {
  Client worker = Connect(kExchangeMethod);
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  ASSERT_TRUE(worker.received->finished.has_value());
  EXPECT_EQ(worker.received->finished->code(), absl::StatusCode::kInvalidArgument);
  // What still comes is dropped.
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, 1)));
  EXPECT_TRUE(worker.quiet());
}

// Rule 1.
TEST_F(ParameterServerTest, LowerTermsAreRefused) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Ask(control, Claim(kTerm + 9));
  const std::string job = job_.ResolvedText();
  for (const proto::ControlRequest& request :
       {Claim(kTerm), Load(kTerm + 1, job), Fence(kTerm, kTerm, 5), Release(kTerm, 5),
        Stop(kTerm)}) {
    const proto::ControlReply reply = Ask(control, request);
    EXPECT_EQ(reply.term_refused().promised_term(), kTerm + 9) << request.DebugString();
  }
  EXPECT_EQ(server_->promised_term(), kTerm + 9);
  EXPECT_EQ(server_->timeline(), kTerm);
  EXPECT_EQ(stops_, 0);
}

// Rule 1 too: a stray Claim must not end a coordinator, nor leave its successor without a term.
TEST_F(ParameterServerTest, TermsThatNoCoordinatorComesToAreRefusedAndChangeNothing) {
  const std::string job = job_.ResolvedText();
  const auto refused = [this](const proto::ControlRequest& request) {
    Client stranger = ConnectControl();
    SendOnly(stranger, request);
    EXPECT_TRUE(stranger.quiet());
    ASSERT_TRUE(stranger.received->finished.has_value()) << request.ShortDebugString();
    EXPECT_EQ(stranger.received->finished->code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(stranger.received->finished->message(), HasSubstr("ps 0 has promised"));
  };
  refused(Claim(UINT64_MAX));
  refused(Claim(MakeTerm(kMaxTermNumber + 1, 0)));
  EXPECT_EQ(server_->promised_term(), 0u);
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  const uint64_t far = MakeTerm(TermNumber(kTerm) + kMaxTermsAhead + 1, 0);
  for (const uint64_t term : {far, UINT64_MAX}) {
    for (const proto::ControlRequest& request :
         {Claim(term), Load(term, job), Fence(term, kTerm, 5), Release(term, 5), Stop(term)}) {
      refused(request);
    }
  }
  EXPECT_EQ(server_->promised_term(), kTerm);
  EXPECT_EQ(server_->timeline(), kTerm);
  EXPECT_EQ(stops_, 0);
  EXPECT_TRUE(Ask(control, Claim(kTerm)).has_claimed()) << "its coordinator has not noticed";
  const uint64_t next = MakeTerm(TermNumber(kTerm) + kMaxTermsAhead, 9);
  EXPECT_EQ(Ask(control, Claim(next)).claimed().promised_term(), next);
}

// Rule 2.
TEST_F(ParameterServerTest, ClaimTellsWhatIsApplied) {
  Client control = ConnectControl();
  proto::Claimed claimed = Ask(control, Claim(kTerm)).claimed();
  EXPECT_EQ(claimed.incarnation(), kIncarnation);
  EXPECT_EQ(claimed.promised_term(), kTerm);
  EXPECT_EQ(claimed.timeline(), 0u);
  EXPECT_EQ(claimed.job_fingerprint(), 0u);
  EXPECT_EQ(claimed.shard_map_fingerprint(), 0u);
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  for (const uint64_t step : {0, 1, 3}) PushStep(worker, kTerm, step);
  Push(worker, kTerm, 2, 0);
  Push(worker, kTerm, 2, 0);
  claimed = Ask(control, Claim(kTerm)).claimed();
  EXPECT_EQ(claimed.timeline(), kTerm);
  EXPECT_EQ(claimed.job_fingerprint(), job_.Fingerprint());
  EXPECT_EQ(claimed.shard_map_fingerprint(), shard_map_.Fingerprint());
  EXPECT_EQ(claimed.base(), 2u);
  EXPECT_THAT(claimed.applied_after_base(), ElementsAre(3));
  EXPECT_EQ(claimed.applied_chunks(), 3 * shard_map_.ps(0).chunks.size() + 1);
  EXPECT_EQ(claimed.repeated_chunks(), 1u);
  EXPECT_GT(claimed.staleness_sum(), 0u);
  EXPECT_EQ(claimed.staleness_max(), 3u);
}

// A coordinator that was started with the wrong ps must not unseat theirs.
TEST_F(ParameterServerTest, AClaimForAnotherJobPromisesNothing) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  proto::ControlRequest claim = Claim(kTerm + 9);
  claim.mutable_claim()->set_job_fingerprint(job_.Fingerprint() + 1);
  const proto::Claimed claimed = Ask(control, claim).claimed();
  EXPECT_EQ(claimed.promised_term(), kTerm);
  EXPECT_EQ(claimed.job_fingerprint(), job_.Fingerprint());
  EXPECT_EQ(server_->promised_term(), kTerm);
  claim.mutable_claim()->set_job_fingerprint(job_.Fingerprint());
  EXPECT_EQ(Ask(control, claim).claimed().promised_term(), kTerm + 9);
}

// Rule 3.
// --- Coordinators of several runs ---

constexpr uint64_t kNextTerm = kTerm + (uint64_t{1} << 32);

proto::ControlRequest ClaimOf(const std::string& run, uint64_t term, bool leads) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_claim()->set_version(kVersion);
  request.mutable_claim()->set_leads(leads);
  proto::Claimant* claimant = request.mutable_claim()->mutable_claimant();
  claimant->set_run_id(run);
  claimant->set_run_directory("/runs/" + run);
  claimant->set_address(run + ":2222");
  claimant->set_host("host-of-" + run);
  claimant->set_pid(7);
  return request;
}

TEST_F(ParameterServerTest, ItKeepsToTheRunThatLeadsWhileItIsHeardOf) {
  Client ada = ConnectControl(), bob = ConnectControl();
  EXPECT_TRUE(Ask(ada, ClaimOf("ada", kTerm, true)).has_claimed());
  loop_->Advance(std::chrono::seconds(9));
  const proto::ControlReply reply = Ask(bob, ClaimOf("bob", kNextTerm, false));
  ASSERT_TRUE(reply.has_claim_refused()) << reply.DebugString();
  EXPECT_EQ(reply.claim_refused().term(), kNextTerm);
  EXPECT_EQ(reply.claim_refused().silent_ms(), 9000u);
  EXPECT_EQ(reply.claim_refused().holder().address(), "ada:2222");
  EXPECT_EQ(reply.claim_refused().holder().host(), "host-of-ada");
  EXPECT_EQ(reply.claim_refused().holder().pid(), 7);
  EXPECT_EQ(reply.claim_refused().holder().run_directory(), "/runs/ada");
  EXPECT_EQ(reply.claim_refused().holder().run_id(), "");
  EXPECT_EQ(server_->promised_term(), kTerm);
  // What is sent without a claim takes nothing either, nor does a coordinator that tells no run.
  for (const proto::ControlRequest& request :
       {Load(kNextTerm, job_.ResolvedText()), Stop(kNextTerm), Claim(kNextTerm)}) {
    EXPECT_TRUE(Ask(bob, request).has_claim_refused()) << request.DebugString();
  }
  EXPECT_EQ(stops_, 0);
  EXPECT_TRUE(Ask(ada, ClaimOf("ada", kTerm, true)).has_claimed());
  loop_->Advance(std::chrono::seconds(9));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claim_refused());
  // As after kill -9.
  loop_->Advance(std::chrono::seconds(1));
  EXPECT_EQ(Ask(bob, ClaimOf("bob", kNextTerm, false)).claimed().promised_term(), kNextTerm);
}

TEST_F(ParameterServerTest, ACoordinatorOfTheSameRunTakesOverAtOnce) {
  Client ada = ConnectControl(), heir = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(Ask(heir, ClaimOf("ada", kNextTerm, false)).has_claimed());
  EXPECT_EQ(Ask(ada, ClaimOf("ada", kTerm, true)).term_refused().claimant().address(), "ada:2222");
  // The heir has what its run had, also before it leads.
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm + 1, false)).has_claim_refused());
}

// Whoever opens a stream is told the promised term.
TEST_F(ParameterServerTest, AStrangersClaimOfThePromisedTermUnseatsNobody) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(Ask(bob, Claim(kTerm)).has_claimed());
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claim_refused());
}

TEST_F(ParameterServerTest, ACheckpointOfAnotherRunIsNotLoaded) {
  Client ada = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  Ask(ada, Load(kTerm, job_.ResolvedText()));
  Ask(ada, ClaimOf("ada", kNextTerm, true));
  for (const std::string directory :
       {"/runs/bob/checkpoints/step-1", "/runs/ada/checkpoints", "/runs/ada/checkpoints/../../bob",
        "runs/ada/checkpoints/x"}) {
    const proto::ControlReply reply = Ask(ada, Load(kNextTerm, job_.ResolvedText(), directory));
    EXPECT_TRUE(reply.has_load_failed()) << directory;
    EXPECT_FALSE(reply.load_failed().checkpoint_is_bad());
    EXPECT_EQ(server_->timeline(), kTerm) << directory;
  }
}

TEST_F(ParameterServerTest, WhoDoesNotLeadYetIsOutbid) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, false));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claimed());
}

TEST_F(ParameterServerTest, WhoResignsLeavesItToAnybody) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  proto::ControlRequest resign;
  resign.mutable_resign();
  resign.set_term(kTerm - 1);
  EXPECT_TRUE(Ask(bob, resign).has_term_refused()) << "only the holder resigns";
  resign.set_term(kTerm);
  SendOnly(ada, resign);
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claimed());
}

TEST_F(ParameterServerTest, ATakeoverThatIsAskedForIsNotRefused) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  proto::ControlRequest claim = ClaimOf("bob", kNextTerm, false);
  claim.mutable_claim()->set_take_over(true);
  EXPECT_TRUE(Ask(bob, claim).has_claimed());
  const proto::TermRefused refused = Ask(ada, ClaimOf("ada", kTerm, true)).term_refused();
  EXPECT_EQ(refused.promised_term(), kNextTerm);
  EXPECT_EQ(refused.claimant().address(), "bob:2222");
  proto::ServerHello hello;
  Connect(kControlMethod, &hello);
  EXPECT_EQ(hello.claimant().address(), "bob:2222");
}

TEST_F(ParameterServerTest, WhatAClaimantSaysOfItselfIsBounded) {
  Client ada = ConnectControl();
  proto::ControlRequest claim = ClaimOf(std::string(1 << 20, 'a'), kTerm, true);
  EXPECT_TRUE(Ask(ada, claim).has_claimed());
  EXPECT_LT(Ask(ada, ClaimOf("x", kTerm - 1, true)).ByteSizeLong(), 1000u);
}

TEST_F(ParameterServerTest, LoadForAnotherIncarnationIsRefused) {
  Client control = ConnectControl();
  proto::ControlRequest load = Load(kTerm, job_.ResolvedText());
  load.mutable_load()->set_incarnation(kIncarnation + 1);
  const proto::ControlReply reply = Ask(control, load);
  EXPECT_EQ(reply.load_failed().term(), kTerm);
  EXPECT_FALSE(reply.load_failed().checkpoint_is_bad());
  EXPECT_TRUE(reply.load_failed().other_incarnation());
  EXPECT_THAT(reply.load_failed().reason(), HasSubstr("incarnation"));
  EXPECT_EQ(server_->promised_term(), 0u);
  EXPECT_EQ(server_->timeline(), 0u);
}

TEST_F(ParameterServerTest, RepeatedLoadIsAnsweredAndChangesNothing) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  PushStep(worker, kTerm, 0);
  const std::vector<float> values = Values(worker, kTerm, 0);
  EXPECT_EQ(Ask(control, Load(kTerm, job_.ResolvedText())).loaded().timeline(), kTerm);
  EXPECT_EQ(Values(worker, kTerm, 0), values);
}

TEST_F(ParameterServerTest, LoadRepeatedWhileLoadingIsAnsweredOnceToTheLastAsker) {
  Client first = ConnectControl();
  Client second = ConnectControl();
  SendOnly(first, Load(kTerm, job_.ResolvedText()));
  SendOnly(second, Load(kTerm, job_.ResolvedText()));
  EXPECT_EQ(server_->timeline(), 0u);
  EXPECT_TRUE(loop_->RunOneOffloaded());
  EXPECT_FALSE(loop_->RunOneOffloaded()) << "read twice";
  EXPECT_TRUE(first.quiet());
  EXPECT_EQ(second.Take<proto::ControlReply>().loaded().timeline(), kTerm);
  EXPECT_EQ(server_->timeline(), kTerm);
}

TEST_F(ParameterServerTest, NewerLoadSupersedesTheOneBeingRead) {
  Client control = ConnectControl();
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  SendOnly(control, Load(kTerm + 1, job_.ResolvedText()));
  loop_->RunUntilIdle();
  EXPECT_EQ(control.Take<proto::ControlReply>().loaded().timeline(), kTerm + 1);
  EXPECT_TRUE(control.quiet());
  EXPECT_EQ(server_->timeline(), kTerm + 1);
}

// Each has a job, of many megabytes perhaps.
TEST_F(ParameterServerTest, OfLoadsDuringALoadTheNewestAloneWaits) {
  Client control = ConnectControl();
  loop_->set_hold_offloads(true);
  for (uint64_t i = 0; i < 40; ++i) SendOnly(control, Load(kTerm + i, job_.ResolvedText()));
  EXPECT_TRUE(loop_->RunOneOffloaded());
  EXPECT_TRUE(loop_->RunOneOffloaded());
  EXPECT_FALSE(loop_->RunOneOffloaded());
  EXPECT_EQ(control.Take<proto::ControlReply>().loaded().timeline(), kTerm + 39);
  EXPECT_TRUE(control.quiet());
}

TEST_F(ParameterServerTest, ClaimDuringALoadEndsIt) {
  Client old = ConnectControl();
  Client next = ConnectControl();
  SendOnly(old, Load(kTerm, job_.ResolvedText()));
  SendOnly(next, Claim(kTerm + 1));
  EXPECT_EQ(next.Take<proto::ControlReply>().claimed().timeline(), 0u);
  loop_->RunUntilIdle();
  EXPECT_EQ(old.Take<proto::ControlReply>().term_refused().promised_term(), kTerm + 1);
  EXPECT_EQ(server_->timeline(), 0u);
}

TEST_F(ParameterServerTest, OwnProbeDuringALoadDoesNotEndIt) {
  Client control = ConnectControl();
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  SendOnly(control, Claim(kTerm));
  EXPECT_EQ(control.Take<proto::ControlReply>().claimed().timeline(), 0u);
  loop_->RunUntilIdle();
  EXPECT_EQ(control.Take<proto::ControlReply>().loaded().timeline(), kTerm);
}

TEST_F(ParameterServerTest, OldTimelineIsOverAsSoonAsALoadHasCome) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  SendOnly(control, Load(kTerm + 1, job_.ResolvedText()));
  EXPECT_EQ(server_->promised_term(), kTerm + 1);
  const proto::ExchangeReply reply = Push(worker, kTerm, 0, 0);
  EXPECT_EQ(reply.refused().timeline(), 0u);
  EXPECT_THAT(reply.refused().reason(), HasSubstr("empty"));
  loop_->RunUntilIdle();
  EXPECT_EQ(server_->timeline(), kTerm + 1);
}

TEST_F(ParameterServerTest, LoadThatFailsLeavesThePsEmptyAndSaysWhy) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  struct Case {
    proto::ControlRequest load;
    std::string reason;
    bool checkpoint_is_bad;
  };
  Job no_model = job_;
  no_model.model_json = R"({"class_name": "Nothing"})";
  const std::string job = job_.ResolvedText();
  const TemporaryDirectory damaged;
  ASSERT_TRUE(WriteNewFile(damaged / kManifestName, "{").ok());
  for (const auto& [load, reason, checkpoint_is_bad] :
       {Case{Load(kTerm + 1, "not JSON"), "the job", false},
        Case{Load(kTerm + 2, no_model.ResolvedText()), "Nothing", false},
        Case{Load(kTerm + 3, job, "", 0), "ps_count 0", false},
        Case{Load(kTerm + 4, job, "", 4'000'000'000), "ps_count 4000000000", false},
        Case{Load(kTerm + 5, job, damaged.path()), "is damaged", true}}) {
    const proto::LoadFailed failed = Ask(control, load).load_failed();
    EXPECT_EQ(failed.term(), load.term());
    EXPECT_THAT(failed.reason(), HasSubstr(reason));
    EXPECT_EQ(failed.checkpoint_is_bad(), checkpoint_is_bad) << reason;
    EXPECT_EQ(server_->timeline(), 0u);
  }
  EXPECT_EQ(Ask(control, Load(kTerm + 6, job)).loaded().timeline(), kTerm + 6);
}

TEST_F(ParameterServerTest, AJobThatDoesNotFitIsRefusedBeforeMemoryIsTaken) {
  memory_ = {.bytes = 1000, .text = "this machine has 1000 B"};
  Restart();
  Client control = ConnectControl();
  const proto::LoadFailed failed = Ask(control, Load(kTerm, job_.ResolvedText())).load_failed();
  EXPECT_FALSE(failed.checkpoint_is_bad());
  EXPECT_THAT(failed.reason(), AllOf(HasSubstr("ps 0 needs "), HasSubstr("(variables "),
                                     HasSubstr("this machine has 1000 B. Give this machine more "
                                               "memory, or the cluster more ps.")));
  EXPECT_EQ(server_->timeline(), 0u);
}

TEST_F(ParameterServerTest, LoadOutlivedByNobody) {
  Client control = ConnectControl();
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  server_.reset();
  EXPECT_TRUE(control.received->destroyed);
  loop_->RunUntilIdle();
}

TEST_F(ParameterServerTest, LoadWhoseAskerIsGoneStillCounts) {
  Client control = ConnectControl();
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->RunUntilIdle();
  EXPECT_EQ(server_->timeline(), kTerm);
  Client again = ConnectControl();
  EXPECT_EQ(Ask(again, Load(kTerm, job_.ResolvedText())).loaded().timeline(), kTerm);
}

// Rule 4.
TEST_F(ParameterServerTest, OtherTimelinesAreRefusedAndChangeNothing) {
  Client control = ConnectControl();
  Client worker = ConnectWorker();
  EXPECT_EQ(Ask(worker, Pull(0, 0, 1)).refused().timeline(), 0u) << "0 is no timeline";
  LoadJob(control, kTerm);
  const std::vector<float> values = Values(worker, kTerm, 0);
  for (const uint64_t timeline : {uint64_t{0}, kTerm - 1, kTerm + 1}) {
    EXPECT_EQ(Push(worker, timeline, 0, 0).refused().timeline(), kTerm);
    const proto::ExchangeReply reply = Ask(worker, Pull(timeline, 0, 1, 7));
    EXPECT_EQ(reply.refused().timeline(), kTerm);
    EXPECT_EQ(reply.refused().requested_timeline(), timeline) << "what was asked for";
    EXPECT_EQ(reply.refused().requested_cut_step(), 7u);
    EXPECT_THAT(reply.refused().reason(), HasSubstr("is in timeline"));
  }
  EXPECT_EQ(Values(worker, kTerm, 0), values);
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().applied_chunks(), 0u);
}

// Rule 5.
TEST_F(ParameterServerTest, PushIsAppliedOnceAndBringsFreshValues) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker(shard_map_.Fingerprint());
  Client other = ConnectWorker(shard_map_.Fingerprint());
  const std::vector<float> before = Values(worker, kTerm, 1);
  proto::ExchangeReply reply = Push(worker, kTerm, 4, 1, /*want_values=*/true);
  EXPECT_EQ(reply.applied().timeline(), kTerm);
  EXPECT_EQ(reply.applied().step(), 4u);
  EXPECT_EQ(reply.applied().chunk(), 1u);
  EXPECT_EQ(reply.applied().version(), 1u);
  EXPECT_FALSE(reply.applied().repeated());
  std::vector<float> fresh(before.size());
  Message message;
  message.payload = worker.payload;
  ASSERT_EQ(message.payload_bytes(), before.size() * sizeof(float));
  CopyPayload(message, 0, fresh.data(), message.payload_bytes());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_FLOAT_EQ(fresh[i], before[i] - 1);

  reply = Push(other, kTerm, 4, 1, /*want_values=*/true);
  EXPECT_TRUE(reply.applied().repeated());
  EXPECT_EQ(reply.applied().version(), 1u);
  EXPECT_FALSE(other.payload.empty());
  reply = Push(other, kTerm, 5, 1);
  EXPECT_EQ(reply.applied().staleness(), 1u);
  EXPECT_TRUE(other.payload.empty());
}

// Rule 5, of a step whose gradient overflowed: it is closed, once, and who asks gets the values.
TEST_F(ParameterServerTest, APushOfNothingIsAcknowledgedAndChangesNoValue) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker(shard_map_.Fingerprint());
  const std::vector<float> before = Values(worker, kTerm, 1);
  proto::ExchangeReply reply = PushSkip(worker, kTerm, 0, 1, /*want_values=*/true);
  EXPECT_EQ(reply.applied().step(), 0u);
  EXPECT_EQ(reply.applied().chunk(), 1u);
  EXPECT_EQ(reply.applied().version(), 1u);
  EXPECT_FALSE(reply.applied().repeated());
  Message message;
  message.payload = worker.payload;
  EXPECT_EQ(message.payload_bytes(), before.size() * sizeof(float));
  EXPECT_EQ(Values(worker, kTerm, 1), before);
  EXPECT_TRUE(Push(worker, kTerm, 0, 1).applied().repeated()) << "who computes it again is late";
  EXPECT_EQ(Values(worker, kTerm, 1), before);
  for (const uint32_t chunk : {0, 2, 3}) PushSkip(worker, kTerm, 0, chunk);
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().base(), 1u);
  EXPECT_TRUE(PushSkip(worker, kTerm - 1, 1, 1).has_refused());
  // It has neither a gradient nor a round.
  for (const bool of_round : {false, true}) {
    proto::ExchangeRequest request;
    request.mutable_push()->set_timeline(kTerm);
    request.mutable_push()->set_step(1);
    request.mutable_push()->set_nothing(true);
    if (of_round) request.mutable_push()->mutable_round()->set_count(1);
    const float one = 1;
    Client wrong = ConnectWorker(shard_map_.Fingerprint());
    std::vector<Slice> payload;
    if (!of_round) payload.push_back({reinterpret_cast<const char*>(&one), sizeof(one)});
    wrong.callbacks.on_message(MakeMessage(request, std::move(payload)));
    ASSERT_TRUE(wrong.received->finished.has_value());
    EXPECT_EQ(wrong.received->finished->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        wrong.received->finished->message(),
        HasSubstr(of_round ? "chunk 0 of step 1: a skipped step was pushed with a round"
                           : "chunk 0 of step 1: a skipped step was pushed with a gradient"));
  }
}

TEST_F(ParameterServerTest, TheJobSaysWhetherStalenessTellsInTheLearningRate) {
  Client control = ConnectControl();
  for (const bool tells : {false, true}) {
    Job job = job_;
    job.strategy.learning_rate_by_staleness = tells;
    const uint64_t term = kTerm + (tells ? 1 : 0);
    ASSERT_TRUE(Ask(control, Claim(term)).has_claimed());
    ASSERT_EQ(Ask(control, Load(term, job.ResolvedText())).loaded().timeline(), term);
    job_fingerprint_ = job.Fingerprint();
    Client worker = ConnectWorker();
    const float before = Values(worker, term, 0)[0];
    for (uint64_t step = 0; step < 3; ++step) {
      EXPECT_EQ(Push(worker, term, step, 0).applied().staleness(), step);
    }
    EXPECT_FLOAT_EQ(Values(worker, term, 0)[0], before - (tells ? 2.5f : 3));
  }
}

// The last cut would never be made: a chunk had a step that is not below it.
TEST_F(ParameterServerTest, AStepThatTheJobDoesNotHaveEndsTheStream) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  for (uint64_t step = 0; step < job_.steps - 1; ++step) PushStep(worker, kTerm, step);
  Client liar = ConnectWorker();
  proto::ExchangeRequest request;
  request.mutable_push()->set_timeline(kTerm);
  request.mutable_push()->set_step(job_.steps);
  request.mutable_push()->set_nothing(true);
  liar.callbacks.on_message(MakeMessage(request));
  ASSERT_TRUE(liar.received->finished.has_value());
  EXPECT_EQ(liar.received->finished->code(), absl::StatusCode::kInvalidArgument);
  PushStep(worker, kTerm, job_.steps - 1);
  EXPECT_TRUE(Ask(control, Fence(kTerm, kTerm, job_.steps)).has_fence_accepted());
}

TEST_F(ParameterServerTest, ProtocolErrorsEndTheStreamOnly) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client good = ConnectWorker();
  const std::vector<float> values = Values(good, kTerm, 0);
  const uint32_t chunks = shard_map_.ps(0).chunks.size();
  const auto ended = [&](const proto::ExchangeRequest& request) {
    Client worker = ConnectWorker();
    worker.callbacks.on_message(MakeMessage(request));
    EXPECT_TRUE(worker.quiet());
    return worker.received->finished.value_or(absl::OkStatus()).code();
  };
  proto::ExchangeRequest push;
  push.mutable_push()->set_timeline(kTerm);
  EXPECT_EQ(ended(push), absl::StatusCode::kInvalidArgument) << "no gradient";
  push.mutable_push()->set_chunk(UINT32_MAX);
  EXPECT_EQ(ended(push), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ended(Pull(kTerm, 0, chunks + 1)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ended(Pull(kTerm, UINT32_MAX, UINT32_MAX)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ended({}), absl::StatusCode::kInvalidArgument) << "no kind";

  Client window = ConnectWorker();
  proto::ExchangeRequest far;
  far.mutable_push()->set_timeline(kTerm);
  far.mutable_push()->set_step(64);
  const std::vector<float> ones(shard_map_.ps(0).chunks[0].size, 1);
  window.callbacks.on_message(MakeMessage(
      far, {{reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float), nullptr}}));
  EXPECT_EQ(window.received->finished->code(), absl::StatusCode::kOutOfRange);

  Client bad_control = ConnectControl();
  SendOnly(bad_control, Claim(0));
  EXPECT_EQ(bad_control.received->finished->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Values(good, kTerm, 0), values);
}

TEST_F(ParameterServerTest, PullOfAllChunks) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  const uint32_t chunks = shard_map_.ps(0).chunks.size();
  ASSERT_GE(chunks, 3u);
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, 0, chunks)));
  for (uint32_t k = 0; k < chunks; ++k) {
    const proto::ChunkValues values = worker.Take<proto::ExchangeReply>().values();
    EXPECT_EQ(values.chunk(), k);
    EXPECT_EQ(values.timeline(), kTerm);
    EXPECT_EQ(values.version(), 0u);
    ASSERT_EQ(worker.payload.size(), 1u);
    EXPECT_EQ(worker.payload[0].size, shard_map_.ps(0).chunks[k].size * sizeof(float));
  }
  worker.callbacks.on_message(MakeMessage(Pull(kTerm, chunks, 0)));
  EXPECT_TRUE(worker.quiet());
  EXPECT_FALSE(worker.received->finished.has_value());
}

TEST_F(ParameterServerTest, StopIsAnsweredAndReportedOnce) {
  Client control = ConnectControl();
  EXPECT_TRUE(Ask(control, Stop(kTerm)).has_stopping());
  EXPECT_TRUE(Ask(control, Stop(kTerm)).has_stopping());
  EXPECT_EQ(stops_, 1);
}

// --- SIGTERM -------------------------------------------------------------------------------------

TEST_F(ParameterServerTest, LeavingItAsksForACheckpointFirst) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  EXPECT_TRUE(control.Take<proto::ControlReply>().has_departing());
  server_->Leave(kGrace);
  EXPECT_TRUE(control.quiet());
  EXPECT_EQ(stops_, 0);
  EXPECT_TRUE(Ask(control, Stop(kTerm)).has_stopping());
  EXPECT_EQ(stops_, 1);
}

TEST_F(ParameterServerTest, LeavingItTellsACoordinatorThatComesMeanwhile) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  Client successor = ConnectControl();
  EXPECT_TRUE(successor.Take<proto::ControlReply>().has_departing());
}

TEST_F(ParameterServerTest, LeavingItDoesNotWaitForEver) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  loop_->Advance(kGrace - std::chrono::milliseconds(1));
  EXPECT_EQ(stops_, 0);
  loop_->Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(stops_, 1);
}

TEST_F(ParameterServerTest, LeavingItWaitsAMomentForACoordinatorWhoseStreamsBroke) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  server_->Leave(kGrace);
  worker.callbacks.on_closed(absl::OkStatus());
  EXPECT_EQ(stops_, 0);
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->Advance(std::chrono::milliseconds(1900));
  EXPECT_EQ(stops_, 0);
  Client again = ConnectControl();
  EXPECT_TRUE(again.Take<proto::ControlReply>().has_departing());
  loop_->Advance(std::chrono::milliseconds(1900));
  EXPECT_EQ(stops_, 0);
  again.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->Advance(std::chrono::seconds(2));
  EXPECT_EQ(stops_, 1) << "it is gone";
}

TEST_F(ParameterServerTest, LeavingItWaitsAMomentForACoordinatorThatWasGoneBefore) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  server_->Leave(kGrace);
  EXPECT_EQ(stops_, 0);
  loop_->Advance(std::chrono::seconds(2));
  EXPECT_EQ(stops_, 1);
}

TEST_F(ParameterServerTest, LeavingEmptyIsDoneAtOnce) {
  Client control = ConnectControl();
  server_->Leave(kGrace);
  EXPECT_EQ(stops_, 1);
}

}  // namespace
}  // namespace shoal
