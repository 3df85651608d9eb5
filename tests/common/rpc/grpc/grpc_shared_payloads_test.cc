// Payloads between a client and a server of one machine: copied into memory that both have, or
// lent.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/grpc/grpc_network.h"
#include "common/rpc/shared/shared_payloads.h"
#include "tests/common/rpc/network_fixture.h"

namespace shoal {
namespace {

class SharingTransport {
 public:
  explicit SharingTransport(TransportLimits /*limits*/) {}
  std::unique_ptr<TestNode> CreateNode() const {
    return std::make_unique<TestNode>(GrpcNetwork::Create({}),
                                      [](GrpcNetwork* network) { network->Run(Time::zero()); });
  }
  static std::string ListenAddress() { return "127.0.0.1:0"; }
};

class GrpcSharedPayloadsTest : public NetworkConformance<SharingTransport> {
 protected:
  // A server that answers the first message of its one stream, and keeps all, until `count` came.
  void StartHolding(size_t count) {
    NetworkConformance<SharingTransport>::StartServer(
        SharingTransport::ListenAddress(),
        [this, count](const std::string&, std::unique_ptr<Stream> stream) {
          serving_ = std::move(stream);
          return StreamCallbacks{.on_message =
                                     [this, count](Message message) {
                                       if (held_.empty()) serving_->Send(NumberedMessage(0));
                                       held_.push_back(std::move(message));
                                       if (held_.size() == count) all_came_.Set();
                                     },
                                 .on_closed = [this](absl::Status) { serving_.reset(); }};
        });
  }

  // Of StartHolding, on the server's loop.
  std::unique_ptr<Stream> serving_;
  std::vector<Message> held_;
  Event all_came_;
};

// Whether all of the payload lies in memory that was made to be shared.
bool LiesShared(const Message& message) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::vector<std::pair<uintptr_t, uintptr_t>> shared;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (line.find("memfd:shoal-payloads") != std::string::npos &&
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) {
      shared.emplace_back(begin, end);
    }
  }
  return !message.payload.empty() && std::ranges::all_of(message.payload, [&](const Slice& slice) {
    const auto begin = reinterpret_cast<uintptr_t>(slice.data);
    return std::ranges::any_of(shared, [&](const auto& range) {
      return range.first <= begin && begin + slice.size <= range.second;
    });
  });
}

TEST_F(GrpcSharedPayloadsTest, PeersOfOneMachineSharePayloadsInMemory) {
  Start();
  StopServer();
  std::unique_ptr<Stream> serving;
  std::atomic<int> served_shared = 0;
  NetworkConformance<SharingTransport>::StartServer(
      SharingTransport::ListenAddress(), [&](const std::string&, std::unique_ptr<Stream> stream) {
        serving = std::move(stream);
        return StreamCallbacks{.on_message =
                                   [&](Message message) {
                                     served_shared += LiesShared(message) ? 1 : 0;
                                     serving->Send(std::move(message));  // back, from where it lies
                                   },
                               .on_closed = [&](absl::Status) { serving.reset(); }};
      });
  const std::string chunk(size_t{1} << 20, 'c');
  Event back;
  std::atomic<int> came = 0;
  std::atomic<int> came_shared = 0;
  Stream* stream = nullptr;
  stream = Open(address_, {.on_message =
                               [&](Message message) {
                                 came_shared += LiesShared(message) ? 1 : 0;
                                 EXPECT_EQ(PayloadOf(message), chunk);
                                 if (++came == 10) return back.Set();
                                 stream->Send(NumberedMessage(came, chunk));
                               },
                           .on_closed = [](absl::Status) {}});
  client_->OnLoop([&] { stream->Send(NumberedMessage(0, chunk)); });
  back.Wait();
  // The client does not know at first whether the server has the memory.
  EXPECT_EQ(served_shared, 9);
  EXPECT_EQ(came_shared, 10);
  Close(stream);
  StopServer();
}

// Whoever holds what it got has the rest come with its messages, in the same order.
TEST_F(GrpcSharedPayloadsTest, PayloadsWithoutRoomInSharedMemoryStillArrive) {
  constexpr uint64_t kCount = 40;
  Start();
  StopServer();
  StartHolding(kCount);
  const auto chunk = [](uint64_t i) {
    return std::string(size_t{1} << 20, static_cast<char>('a' + i));
  };
  Stream* stream = nullptr;
  stream = Open(address_, {.on_message =
                               [&](Message) {
                                 for (uint64_t i = 1; i < kCount; ++i)
                                   stream->Send(NumberedMessage(i, chunk(i)));
                               },
                           .on_closed = [](absl::Status) {}});
  client_->OnLoop([&] { stream->Send(NumberedMessage(0, chunk(0))); });
  all_came_.Wait();
  server_->OnLoop([&] {
    uint64_t shared = 0;
    for (uint64_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(NumberOf(held_[i]), i);
      EXPECT_EQ(PayloadOf(held_[i]), chunk(i)) << i;
      shared += LiesShared(held_[i]) ? 1 : 0;
    }
    EXPECT_GE(shared, kSharedHalfBytes / chunk(0).size() - 1);
    EXPECT_LT(shared, kCount - 1);
    held_.clear();
  });
  Close(stream);
  StopServer();
}

// More of it than finds room among the copies; and the client has it back when the server, who
// answers each message later, has done with it.
TEST_F(GrpcSharedPayloadsTest, LentMemoryIsReadInPlace) {
  constexpr uint64_t kCount = 40;
  constexpr size_t kChunk = size_t{1} << 20;
  Start();
  StopServer();
  StartHolding(kCount);
  const std::shared_ptr<SharedMemory> memory = SharedMemory::Create(kCount * kChunk);
  const auto chunk = [&](uint64_t i) { return memory->data() + i * kChunk; };
  for (uint64_t i = 0; i < kCount; ++i) std::fill_n(chunk(i), kChunk, static_cast<char>('a' + i));
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> owned = owner;
  const auto lent = [&](uint64_t i) {
    Message message = NumberedMessage(i);
    message.payload = {{chunk(i), kChunk, owner}};
    return message;
  };
  Stream* stream = nullptr;
  Event back;
  client_->OnLoop([&] { client_->network()->Lend(memory); });
  stream = Open(address_, {.on_message =
                               [&](Message message) {
                                 if (NumberOf(message) == 1) return back.Set();
                                 for (uint64_t i = 1; i < kCount; ++i) stream->Send(lent(i));
                                 owner.reset();
                               },
                           .on_closed = [](absl::Status) {}});
  client_->OnLoop([&] { stream->Send(lent(0)); });
  all_came_.Wait();
  EXPECT_FALSE(owned.expired());
  server_->OnLoop([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(NumberOf(held_[i]), i);
      EXPECT_EQ(PayloadOf(held_[i]), std::string(chunk(i), kChunk)) << i;
      EXPECT_TRUE(i == 0 || LiesShared(held_[i])) << i;
    }
    held_.clear();
    serving_->Send(NumberedMessage(1));
  });
  back.Wait();
  client_->OnLoop([&] { EXPECT_TRUE(owned.expired()); });
  Close(stream);
  StopServer();
}

}  // namespace
}  // namespace shoal
