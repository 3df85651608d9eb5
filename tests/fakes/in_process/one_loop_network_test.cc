#include "tests/fakes/in_process/one_loop_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A node that listens, and what its streams have heard.
class LoggingServer {
 public:
  LoggingServer(OneLoopHub* hub, const std::string& address) : node_(hub->CreateNode(address)) {
    EXPECT_TRUE(node_
                    ->Listen(address,
                             [this](const std::string&, std::unique_ptr<Stream> stream) {
                               streams_.push_back(std::move(stream));
                               return StreamCallbacks{.on_message = [this](Message message) {
                                 heard.push_back(message.fields);
                               }};
                             })
                    .ok());
  }
  OneLoopHub::Node& node() { return *node_; }
  Stream& stream() { return *streams_.back(); }

  std::vector<std::string> heard;

 private:
  std::unique_ptr<OneLoopHub::Node> node_;
  std::vector<std::unique_ptr<Stream>> streams_;  // destroyed before the node
};

class OneLoopNetworkTest : public testing::Test {
 protected:
  std::unique_ptr<Stream> Open(const std::string& address) {
    return client_->Open(
        address, "method",
        {.on_message = [this](Message message) { heard_.push_back(message.fields); },
         .on_closed = [this](absl::Status status) { closed_.push_back(status.code()); }});
  }

  FakeLoop loop_;
  OneLoopHub hub_{&loop_};
  const std::unique_ptr<OneLoopHub::Node> client_ = hub_.CreateNode("client");
  std::vector<std::string> heard_;
  std::vector<absl::StatusCode> closed_;
};

TEST_F(OneLoopNetworkTest, MessagesGoBothWays) {
  LoggingServer server(&hub_, "server");
  const auto stream = Open("server");
  stream->Send({.fields = "ping"});
  loop_.RunUntilIdle();
  server.stream().Send({.fields = "pong"});
  loop_.RunUntilIdle();
  EXPECT_THAT(server.heard, ElementsAre("ping"));
  EXPECT_THAT(heard_, ElementsAre("pong"));
}

TEST_F(OneLoopNetworkTest, NothingArrivesAtANodeThatIsHeld) {
  LoggingServer server(&hub_, "server");
  const auto stream = Open("server");
  loop_.RunUntilIdle();
  server.node().Hold(true);
  stream->Send({.fields = "first"});
  stream->Send({.fields = "second"});
  loop_.RunUntilIdle();
  EXPECT_THAT(server.heard, IsEmpty());
  server.node().Hold(false);
  loop_.RunUntilIdle();
  EXPECT_THAT(server.heard, ElementsAre("first", "second"));
}

TEST_F(OneLoopNetworkTest, ARedirectedMethodGoesToAnotherNode) {
  LoggingServer server(&hub_, "server");
  LoggingServer other(&hub_, "other");
  hub_.Redirect("method", "server", "other");
  const auto stream = Open("server");
  stream->Send({.fields = "ping"});
  loop_.RunUntilIdle();
  EXPECT_THAT(server.heard, IsEmpty());
  EXPECT_THAT(other.heard, ElementsAre("ping"));
}

TEST_F(OneLoopNetworkTest, TheEndOfANodeBreaksItsStreams) {
  auto server = std::make_unique<LoggingServer>(&hub_, "server");
  const auto stream = Open("server");
  loop_.RunUntilIdle();
  server.reset();
  loop_.RunUntilIdle();
  EXPECT_THAT(closed_, ElementsAre(absl::StatusCode::kUnavailable));
  const auto next = Open("server");
  loop_.RunUntilIdle();
  EXPECT_THAT(closed_, ElementsAre(absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace shoal
