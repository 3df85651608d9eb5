#include "coordinator/steps/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/log/logging.h"
#include "proto/coordinator.pb.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using testing::SizeIs;

constexpr int kSeat = 3;

class AdmissionTest : public testing::Test {
 protected:
  std::shared_ptr<FarEnd> Connect(Admission::Key* key) {
    auto peer = std::make_shared<FarEnd>(&loop_, "10.0.0.7:4711", kWorkMethod);
    *key = admission_.Add(peer->MakeStream());
    peer->set_callbacks(
        {.on_message = [](const Message&) {},
         .on_closed = [this, key = *key](const absl::Status&) { admission_.OnClosed(key); }});
    return peer;
  }
  static proto::Rejected TakeRejected(FarEnd& peer) {
    const auto orders = peer.Take<proto::WorkerOrder>();
    EXPECT_EQ(orders.size(), 1u);
    return orders.empty() ? proto::Rejected() : orders[0].rejected();
  }
  void Close(FarEnd& peer) {
    peer.Close(absl::OkStatus());
    loop_.RunUntilIdle();
  }

  FakeLoop loop_;
  Admission admission_{{.loop = &loop_,
                        .job_fingerprint = 7,
                        .newcomer = "a worker",
                        .message = [](const proto::Rejected& rejected) {
                          proto::WorkerOrder order;
                          *order.mutable_rejected() = rejected;
                          return MakeMessage(order);
                        }}};
};

TEST_F(AdmissionTest, AStreamJoinsUntilItIsAdmitted) {
  Admission::Key key = 0;
  const auto peer = Connect(&key);
  EXPECT_NE(key, 0u);
  ASSERT_NE(admission_.joining(key), nullptr);
  const std::unique_ptr<Stream> stream = admission_.Admit(key, kSeat, /*incarnation=*/1);
  EXPECT_EQ(admission_.joining(key), nullptr);
  Close(*peer);
  EXPECT_FALSE(peer->gone()) << "the caller owns an admitted stream";
}

TEST_F(AdmissionTest, ARejectedStreamLivesUntilItHasClosed) {
  Admission::Key key = 0;
  const auto peer = Connect(&key);
  admission_.RejectJoining(key, "too old", /*final=*/true);
  EXPECT_EQ(admission_.joining(key), nullptr) << "it cannot join any more";
  const proto::Rejected rejected = TakeRejected(*peer);
  EXPECT_EQ(rejected.reason(), "too old");
  EXPECT_TRUE(rejected.final());
  EXPECT_TRUE(peer->finished().has_value() && peer->finished()->ok());
  EXPECT_FALSE(peer->gone());
  Close(*peer);
  EXPECT_TRUE(peer->gone());
}

TEST_F(AdmissionTest, AStreamThatClosesWhileItJoinsIsDestroyed) {
  Admission::Key key = 0;
  const auto peer = Connect(&key);
  Close(*peer);
  EXPECT_TRUE(peer->gone());
  EXPECT_EQ(admission_.joining(key), nullptr);
}

TEST_F(AdmissionTest, AnotherProcessInASeatCountsAsARestart) {
  std::vector<std::unique_ptr<Stream>> streams;
  Admission::Key key = 0;
  for (const uint64_t incarnation : {1, 1, 2, 1}) {
    Connect(&key);
    streams.push_back(admission_.Admit(key, kSeat, incarnation));
    EXPECT_TRUE(admission_.IsLastIn(kSeat, incarnation));
    EXPECT_FALSE(admission_.IsLastIn(kSeat, 3));
  }
  EXPECT_EQ(admission_.seats().at(kSeat).restarts, 2u);
  admission_.Forget(kSeat);
  EXPECT_FALSE(admission_.IsLastIn(kSeat, 1));
}

TEST_F(AdmissionTest, ClaimsOfATakenSeatAreLoggedOnceAMinute) {
  Admission::Key key = 0;
  const auto holder = Connect(&key);
  const std::unique_ptr<Stream> stream = admission_.Admit(key, kSeat, /*incarnation=*/1);
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  for (int second = 0; second < 120; ++second) {
    const auto peer = Connect(&key);
    admission_.RejectClaim(key, kSeat, "taken");
    EXPECT_FALSE(TakeRejected(*peer).final());
    loop_.Advance(std::chrono::seconds(1));
  }
  SendLogTo({});
  EXPECT_THAT(log, SizeIs(2));
}

TEST_F(AdmissionTest, AProcessOfAnotherJobIsRejectedAndCounted) {
  EXPECT_FALSE(admission_.CheckJob(7).has_value());
  const auto rejected = admission_.CheckJob(8);
  ASSERT_TRUE(rejected.has_value());
  EXPECT_TRUE(rejected->other_job());
  EXPECT_FALSE(rejected->final());
  EXPECT_EQ(admission_.of_another_job(), 1u);
}

}  // namespace
}  // namespace shoal
