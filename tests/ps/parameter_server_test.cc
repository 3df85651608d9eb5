// Streams of both services, and what one service does to the other.
#include "ps/parameter_server.h"

#include <gmock/gmock.h>

#include "common/base/version.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

TEST_F(ParameterServerTest, TheHelloTellsTheStateOfThePs) {
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

TEST_F(ParameterServerTest, AnUnknownMethodIsRejectedByName) {
  const auto rejected = server_->Accept("/shoal.proto.Coordinator/Work",
                                        std::make_unique<FakeStream>(std::make_shared<Received>()));
  EXPECT_EQ(rejected.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(rejected.status().message(), HasSubstr("/shoal.proto.Coordinator/Work"));
}

TEST_F(ParameterServerTest, ClosedStreamIsForgotten) {
  Client control = ConnectControl();
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  EXPECT_TRUE(control.received->destroyed);
  control.callbacks.on_message(MakeMessage(Claim(kTerm)));
  EXPECT_EQ(server_->promised_term(), 0u);
}

TEST_F(ParameterServerTest, OtherVersionsAreRejectedNamingBoth) {
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

TEST_F(ParameterServerTest, OldTimelineIsOverAsSoonAsALoadHasCome) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  ClaimWith(control, kTerm + 1);
  SendOnly(control, Load(kTerm + 1, job_.ResolvedText()));
  EXPECT_EQ(server_->promised_term(), kTerm + 1);
  const proto::ExchangeReply reply = Push(worker, kTerm, 0, 0);
  EXPECT_EQ(reply.rejection().timeline(), 0u);
  EXPECT_THAT(reply.rejection().reason(), HasSubstr("empty"));
  loop_->RunUntilIdle();
  EXPECT_EQ(server_->timeline(), kTerm + 1);
}

}  // namespace
}  // namespace shoal
