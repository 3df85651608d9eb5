// The streams of coordinators: rules 1 and 2 of the protocol.
#include "ps/services/control_service.h"

#include <gmock/gmock.h>

#include "common/base/term.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ControlServiceTest : public ParameterServerTest {};

// Rule 1.
TEST_F(ControlServiceTest, LowerTermsAreRejected) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Ask(control, Claim(kTerm + 9));
  const std::string job = job_.ResolvedText();
  for (const proto::ControlRequest& request :
       {Claim(kTerm), Load(kTerm + 1, job), Fence(kTerm, kTerm, 5), Release(kTerm, 5),
        Stop(kTerm)}) {
    const proto::ControlReply reply = Ask(control, request);
    EXPECT_EQ(reply.term_rejected().promised_term(), kTerm + 9) << request.DebugString();
  }
  EXPECT_EQ(server_->promised_term(), kTerm + 9);
  EXPECT_EQ(server_->timeline(), kTerm);
  EXPECT_EQ(stops_, 0);
}

// Rule 1 too: a stray Claim must not end a coordinator, nor leave its successor without a term.
TEST_F(ControlServiceTest, ImplausibleTermsAreRejectedAndChangeNothing) {
  const std::string job = job_.ResolvedText();
  const auto rejected = [this](const proto::ControlRequest& request) {
    Client stranger = ConnectControl();
    SendOnly(stranger, request);
    EXPECT_TRUE(stranger.quiet());
    ASSERT_TRUE(stranger.received->finished.has_value()) << request.ShortDebugString();
    EXPECT_EQ(stranger.received->finished->code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(stranger.received->finished->message(), HasSubstr("ps 0 has promised"));
  };
  rejected(Claim(UINT64_MAX));
  rejected(Claim(MakeTerm(kMaxTermNumber + 1, 0)));
  EXPECT_EQ(server_->promised_term(), 0u);
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  const uint64_t far = MakeTerm(TermNumber(kTerm) + kMaxTermsAhead + 1, 0);
  for (const uint64_t term : {far, UINT64_MAX}) {
    for (const proto::ControlRequest& request :
         {Claim(term), Load(term, job), Fence(term, kTerm, 5), Release(term, 5), Stop(term)}) {
      rejected(request);
    }
  }
  EXPECT_EQ(server_->promised_term(), kTerm);
  EXPECT_EQ(server_->timeline(), kTerm);
  EXPECT_EQ(stops_, 0);
  EXPECT_TRUE(Ask(control, Claim(kTerm)).has_claimed()) << "its coordinator has not noticed";
  const uint64_t next = MakeTerm(TermNumber(kTerm) + kMaxTermsAhead, 9);
  EXPECT_EQ(Ask(control, Claim(next)).claimed().promised_term(), next);
}

TEST_F(ControlServiceTest, TheErrorOfAnImplausibleTermNamesTheLimits) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client stranger = ConnectControl();
  SendOnly(stranger, Claim(MakeTerm(TermNumber(kTerm) + kMaxTermsAhead + 1, 0)));
  ASSERT_TRUE(stranger.received->finished.has_value());
  EXPECT_EQ(stranger.received->finished->message(),
            "the term 1048578-00000000 is too high: ps 0 has promised 1-00000005, and accepts "
            "numbers up to 1048576 above that and at most 2147483648; if a coordinator does have "
            "this term, restart this ps");
}

// Rule 2.
TEST_F(ControlServiceTest, AClaimTellsTheAppliedSteps) {
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

// A coordinator with the wrong ps in its cluster spec must not replace theirs.
TEST_F(ControlServiceTest, AClaimForAnotherJobPromisesNothing) {
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

TEST_F(ControlServiceTest, MessagesThatAreNoCommandEndTheirStreamOnly) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  proto::ControlRequest no_kind;
  no_kind.set_term(kTerm);
  for (const Message& message :
       {MakeMessage(Claim(0)), MakeMessage(no_kind), Message{.fields = "\xff", .payload = {}}}) {
    Client bad = ConnectControl();
    bad.callbacks.on_message(message);
    ASSERT_TRUE(bad.received->finished.has_value());
    EXPECT_EQ(bad.received->finished->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(bad.quiet());
  }
  EXPECT_FALSE(control.received->finished.has_value());
  EXPECT_EQ(Ask(control, Claim(kTerm)).claimed().timeline(), kTerm);
}

TEST_F(ControlServiceTest, SilenceCountsFromTheLastCommand) {
  const auto silence = [this] {
    return SampleValue(*server_, "shoal_ps_coordinator_silence_seconds");
  };
  loop_->Advance(std::chrono::seconds(3));
  EXPECT_EQ(silence(), 3) << "since the start";
  Client control = ConnectControl();
  EXPECT_EQ(silence(), 3) << "a stream is no command";
  Ask(control, Claim(kTerm));
  EXPECT_EQ(silence(), 0);
  loop_->Advance(std::chrono::seconds(2));
  EXPECT_EQ(silence(), 2);
  Ask(control, Claim(kTerm - 1));
  EXPECT_EQ(silence(), 2) << "a lower term is of a former coordinator";
  LoadJob(control, kTerm);
  EXPECT_EQ(silence(), 0);
  loop_->Advance(std::chrono::seconds(2));
  proto::ControlRequest other_job = Claim(kTerm + 9);
  other_job.mutable_claim()->set_job_fingerprint(job_.Fingerprint() + 1);
  Ask(control, other_job);
  EXPECT_EQ(silence(), 2) << "a claim for another job promises nothing";
  Ask(control, Claim(kTerm + 9));
  EXPECT_EQ(silence(), 0) << "a successor";
}

TEST_F(ControlServiceTest, StopIsAnsweredAndReportedOnce) {
  Client control = ConnectCoordinator(kTerm);
  EXPECT_TRUE(Ask(control, Stop(kTerm)).has_stopping());
  EXPECT_TRUE(Ask(control, Stop(kTerm)).has_stopping());
  EXPECT_EQ(stops_, 1);
}

}  // namespace
}  // namespace shoal
