// Coordinators of several runs that claim one ps.
#include <gmock/gmock.h>

#include "common/base/version.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

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

proto::ControlRequest Resign(uint64_t term) {
  proto::ControlRequest request;
  request.set_term(term);
  request.mutable_resign();
  return request;
}

class ControlServiceRunsTest : public ParameterServerTest {};

TEST_F(ControlServiceRunsTest, ItFollowsTheLeadingRunUntilThatIsSilent) {
  Client ada = ConnectControl(), bob = ConnectControl();
  EXPECT_TRUE(Ask(ada, ClaimOf("ada", kTerm, true)).has_claimed());
  loop_->Advance(std::chrono::seconds(9));
  const proto::ControlReply reply = Ask(bob, ClaimOf("bob", kNextTerm, false));
  ASSERT_TRUE(reply.has_claim_rejected()) << reply.DebugString();
  EXPECT_EQ(reply.claim_rejected().term(), kNextTerm);
  EXPECT_EQ(reply.claim_rejected().silent_ms(), 9000u);
  EXPECT_EQ(reply.claim_rejected().holder().address(), "ada:2222");
  EXPECT_EQ(reply.claim_rejected().holder().host(), "host-of-ada");
  EXPECT_EQ(reply.claim_rejected().holder().pid(), 7);
  EXPECT_EQ(reply.claim_rejected().holder().run_directory(), "/runs/ada");
  EXPECT_EQ(reply.claim_rejected().holder().run_id(), "");
  EXPECT_EQ(server_->promised_term(), kTerm);
  // Commands without a claim are rejected, too, and so is a claim without a run.
  for (const proto::ControlRequest& request :
       {Load(kNextTerm, job_.ResolvedText()), Stop(kNextTerm), Claim(kNextTerm)}) {
    EXPECT_TRUE(Ask(bob, request).has_claim_rejected()) << request.DebugString();
  }
  EXPECT_EQ(stops_, 0);
  EXPECT_TRUE(Ask(ada, ClaimOf("ada", kTerm, true)).has_claimed());
  loop_->Advance(std::chrono::seconds(9));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claim_rejected());
  // The first coordinator has died.
  loop_->Advance(std::chrono::seconds(1));
  EXPECT_EQ(Ask(bob, ClaimOf("bob", kNextTerm, false)).claimed().promised_term(), kNextTerm);
}

TEST_F(ControlServiceRunsTest, AClaimOfAnotherRunDoesNotEndTheSilence) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  loop_->Advance(std::chrono::seconds(9));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claim_rejected());
  EXPECT_EQ(SampleValue(*server_, "shoal_ps_coordinator_silence_seconds"), 9);
}

TEST_F(ControlServiceRunsTest, ACoordinatorOfTheSameRunTakesOverAtOnce) {
  Client ada = ConnectControl(), heir = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(Ask(heir, ClaimOf("ada", kNextTerm, false)).has_claimed());
  EXPECT_EQ(Ask(ada, ClaimOf("ada", kTerm, true)).term_rejected().claimant().address(), "ada:2222");
  // The heir keeps the ps of its run, also before it leads.
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm + 1, false)).has_claim_rejected());
}

// The hello tells every client the promised term.
TEST_F(ControlServiceRunsTest, AStrangersClaimOfThePromisedTermUnseatsNobody) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(Ask(bob, Claim(kTerm)).has_claimed());
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claim_rejected());
}

TEST_F(ControlServiceRunsTest, AStrangersCommandsOfThePromisedTermAreRejected) {
  Client ada = ConnectControl(), bob = ConnectControl();
  proto::ControlRequest claim = ClaimOf("ada", kTerm, true);
  claim.mutable_claim()->set_training_examples(kExamples);
  Ask(ada, claim);
  ASSERT_TRUE(Ask(ada, Load(kTerm, job_.ResolvedText())).has_loaded());
  Client worker = ConnectWorker();
  PushStep(worker, kTerm, 0);
  ASSERT_TRUE(Ask(ada, Fence(kTerm, kTerm, 1, "", /*hold=*/true)).has_fence_accepted());
  const std::vector<float> cut = Values(worker, kTerm, 0, 1);
  proto::ControlRequest read_cut;
  read_cut.set_term(kTerm);
  read_cut.mutable_read_cut()->set_cut_step(1);
  for (const bool claims : {false, true}) {
    if (claims) {
      EXPECT_TRUE(Ask(bob, ClaimOf("bob", kTerm, true)).has_claimed());
    }
    for (const proto::ControlRequest& request :
         {Release(kTerm, 1), Fence(kTerm, kTerm, 9), Load(kTerm, job_.ResolvedText()), read_cut,
          Stop(kTerm)}) {
      const proto::ControlReply reply = Ask(bob, request);
      EXPECT_EQ(reply.claim_rejected().term(), kTerm) << request.ShortDebugString();
      EXPECT_EQ(reply.claim_rejected().holder().address(), "ada:2222");
    }
    SendOnly(bob, Resign(kTerm));
    EXPECT_TRUE(bob.quiet());
  }
  EXPECT_EQ(stops_, 0);
  EXPECT_EQ(Values(worker, kTerm, 0, 1), cut) << "released";
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claim_rejected()) << "resigned";
}

TEST_F(ControlServiceRunsTest, CommandsNeedAClaimOnTheirOwnStream) {
  Client ada = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  Client again = ConnectControl();
  EXPECT_TRUE(Ask(again, Stop(kTerm)).has_claim_rejected());
  Ask(again, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(Ask(again, Stop(kTerm)).has_stopping());
  EXPECT_EQ(stops_, 1);
}

TEST_F(ControlServiceRunsTest, CommandsNeedAClaimOfTheirOwnTerm) {
  Client ada = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, false));
  EXPECT_EQ(Ask(ada, Stop(kNextTerm)).claim_rejected().term(), kNextTerm);
  EXPECT_EQ(server_->promised_term(), kTerm);
  EXPECT_EQ(stops_, 0);
}

TEST_F(ControlServiceRunsTest, AnEmptyPsTakesNoCommandBeforeAClaim) {
  Client client = ConnectControl();
  for (const proto::ControlRequest& request : {Stop(kTerm), Load(kTerm, job_.ResolvedText())})
    EXPECT_EQ(Ask(client, request).claim_rejected().term(), kTerm);
  EXPECT_EQ(server_->promised_term(), 0u);
  EXPECT_EQ(stops_, 0);
}

TEST_F(ControlServiceRunsTest, OnlyTheHolderTellsTheNumberOfExamples) {
  Client ada = ConnectControl(), bob = ConnectControl();
  proto::ControlRequest claim = ClaimOf("ada", kTerm, true);
  Ask(ada, claim);
  ASSERT_TRUE(Ask(ada, Load(kTerm, job_.ResolvedText())).has_loaded());
  EXPECT_EQ(Ask(bob, Claim(kTerm, 1)).claimed().training_examples(), 0u);
  claim.mutable_claim()->set_training_examples(kExamples);
  EXPECT_EQ(Ask(ada, claim).claimed().training_examples(), kExamples);
}

TEST_F(ControlServiceRunsTest, AStrangersCommandsDoNotEndTheSilence) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  loop_->Advance(std::chrono::seconds(9));
  Ask(bob, ClaimOf("bob", kTerm, true));
  Ask(bob, Stop(kTerm));
  EXPECT_EQ(SampleValue(*server_, "shoal_ps_coordinator_silence_seconds"), 9);
  loop_->Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claimed()) << "the holder is gone";
}

// A Load may be large.
TEST_F(ControlServiceRunsTest, AnAcceptedClaimMakesItsClientTrusted) {
  Client ada = ConnectControl(), bob = ConnectControl();
  EXPECT_FALSE(ada.received->trusted);
  Ask(ada, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(ada.received->trusted);
  Ask(bob, ClaimOf("bob", kTerm, true));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, true)).has_claim_rejected());
  EXPECT_FALSE(bob.received->trusted);
}

TEST_F(ControlServiceRunsTest, ACheckpointOfAnotherRunIsNotLoaded) {
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

TEST_F(ControlServiceRunsTest, ACoordinatorThatDoesNotLeadYetIsOutbid) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, false));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claimed());
}

TEST_F(ControlServiceRunsTest, AfterAResignAnyRunMayClaim) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  EXPECT_TRUE(Ask(bob, Resign(kTerm - 1)).has_term_rejected()) << "only the holder resigns";
  SendOnly(ada, Resign(kTerm));
  EXPECT_TRUE(Ask(bob, ClaimOf("bob", kNextTerm, false)).has_claimed());
}

TEST_F(ControlServiceRunsTest, ARequestedTakeoverIsAccepted) {
  Client ada = ConnectControl(), bob = ConnectControl();
  Ask(ada, ClaimOf("ada", kTerm, true));
  proto::ControlRequest claim = ClaimOf("bob", kNextTerm, false);
  claim.mutable_claim()->set_take_over(true);
  EXPECT_TRUE(Ask(bob, claim).has_claimed());
  const proto::TermRejected rejected = Ask(ada, ClaimOf("ada", kTerm, true)).term_rejected();
  EXPECT_EQ(rejected.promised_term(), kNextTerm);
  EXPECT_EQ(rejected.claimant().address(), "bob:2222");
  proto::ServerHello hello;
  Connect(kControlMethod, &hello);
  EXPECT_EQ(hello.claimant().address(), "bob:2222");
}

TEST_F(ControlServiceRunsTest, TheTextsOfAClaimantAreBounded) {
  Client ada = ConnectControl();
  proto::ControlRequest claim = ClaimOf(std::string(1 << 20, 'a'), kTerm, true);
  EXPECT_TRUE(Ask(ada, claim).has_claimed());
  EXPECT_LT(Ask(ada, ClaimOf("x", kTerm - 1, true)).ByteSizeLong(), 1000u);
}

}  // namespace
}  // namespace shoal
