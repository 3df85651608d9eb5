#include "tests/fakes/in_process/in_process_network.h"

#include <gtest/gtest.h>

#include "tests/common/rpc/event_loop_conformance.h"
#include "tests/common/rpc/network_conformance.h"
#include "tests/common/rpc/source_conformance.h"

namespace shoal {
namespace {

class InProcessTransport {
 public:
  explicit InProcessTransport(TransportLimits limits)
      : hub_(InProcessHub::Options{.max_message_bytes = limits.message_bytes,
                                   .max_queued_bytes = limits.queued_bytes,
                                   .max_queued_messages = limits.queued_messages}) {}
  std::unique_ptr<TestNode> CreateNode() {
    return std::make_unique<TestNode>(hub_.CreateNode(),
                                      [](InProcessHub::Node* node) { node->Run(); });
  }
  static std::string ListenAddress() { return "in-process:0"; }
  static std::string UnreachableAddress() { return "in-process:nobody"; }

 private:
  InProcessHub hub_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(InProcess, EventLoopConformance, InProcessTransport);
INSTANTIATE_TYPED_TEST_SUITE_P(InProcess, NetworkConformance, InProcessTransport);
INSTANTIATE_TYPED_TEST_SUITE_P(InProcess, SourceConformance, InProcessTransport);

TEST(InProcessNetworkTest, AnyNameIsAnAddress) {
  InProcessHub hub;
  const auto node = hub.CreateNode();
  const auto accept = [](const std::string&, std::unique_ptr<Stream>) { return StreamCallbacks{}; };
  EXPECT_EQ(node->Listen("10.0.0.3:2222", accept).value(), "10.0.0.3:2222");
  const auto other = hub.CreateNode();
  EXPECT_NE(other->Listen("10.0.0.3:0", accept).value(), "10.0.0.3:0");
}

TEST(InProcessNetworkTest, TheEndOfANodeThatNeverRanBreaksItsStreams) {
  InProcessTransport transport({});
  const auto client = transport.CreateNode();
  InProcessHub hub;
  StreamLog log;
  std::unique_ptr<Stream> stream;
  auto opener = hub.CreateNode();
  auto idle = hub.CreateNode();
  const std::string address =
      idle->Listen("idle",
                   [](const std::string&, std::unique_ptr<Stream>) { return StreamCallbacks{}; })
          .value();
  stream = opener->Open(address, kExchangeMethod, log.Callbacks());
  idle.reset();
  EventLoop* const loop = opener->loop();
  loop->CallAfter(Time(0), [loop] { loop->Post([loop] { loop->Stop(); }); });
  opener->Run();
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace shoal
