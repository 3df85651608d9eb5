// How many system calls messages cost: gRPC, a shared library, writes through this program's
// sendmsg, which counts (CMakeLists.txt exports it).

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/rpc/grpc/grpc_network.h"
#include "tests/common/rpc/stream_log.h"
#include "tests/common/rpc/test_node.h"

namespace {
std::atomic<int> writes{0};
}  // namespace

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  ++writes;
  return syscall(SYS_sendmsg, fd, message, flags);
}

namespace shoal {
namespace {

constexpr int kRounds = 200;

std::unique_ptr<TestNode> CreateNode() {
  return std::make_unique<TestNode>(GrpcNetwork::Create({}),
                                    [](GrpcNetwork* network) { network->Run(Time::zero()); });
}

// With each read HTTP/2's window opens again, which gRPC says in a message of its own where no
// other is on its way: four messages a round instead of two.
TEST(WindowUpdateTest, AnAnswerCarriesTheWindowUpdate) {
  const std::string payload(3000, 'x');
  std::unique_ptr<Stream> accepted, opened;
  Event over;
  const auto server = CreateNode();
  const auto client = CreateNode();
  std::string address;
  server->OnLoop([&] {
    // Answers at once, as a ps does.
    const auto answer = [&](Message) { accepted->Send(NumberedMessage(1, payload)); };
    address = *server->network()->Listen(
        "127.0.0.1:0", [&, answer](const std::string&, std::unique_ptr<Stream> stream) {
          accepted = std::move(stream);
          return StreamCallbacks{.on_message = answer, .on_closed = [](absl::Status) {}};
        });
  });
  int rounds = 0;
  int begun_at = 0;
  client->OnLoop([&] {
    // In another turn of the loop, as a worker that computes in between.
    const auto on_answer = [&](Message) {
      if (++rounds == 10) begun_at = writes;  // the connection is made
      if (rounds == 10 + kRounds) return over.Set();
      client->loop()->Post([&] { opened->Send(NumberedMessage(2, payload)); });
    };
    opened = client->network()->Open(address, kExchangeMethod,
                                     {.on_message = on_answer, .on_closed = [](absl::Status) {}});
    opened->Send(NumberedMessage(2, payload));
  });
  ASSERT_TRUE(over.Wait());
  const double per_round = static_cast<double>(writes - begun_at) / kRounds;
  EXPECT_GE(per_round, 2);
  // Where a message is cut by the end of gRPC's read buffer, there is one more.
  EXPECT_LT(per_round, 3);
  server->OnLoop([&] { accepted.reset(); });
  client->OnLoop([&] { opened.reset(); });
}

}  // namespace
}  // namespace shoal
