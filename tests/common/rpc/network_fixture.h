#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "tests/common/rpc/stream_log.h"
#include "tests/common/rpc/test_node.h"

namespace shoal {

// The requirements for every EventLoop and Network. A transport is a type with
//   explicit Transport(TransportLimits);
//   std::unique_ptr<TestNode> CreateNode();
//   static std::string ListenAddress();        // Any free address.
//   static std::string UnreachableAddress();   // An address without a listener.
struct TransportLimits {
  size_t message_bytes = size_t{8} << 20;
  size_t queued_bytes = size_t{64} << 20;
  size_t queued_messages = 10000;
};

// A server that logs the events of its streams, and a client; each on its own thread.
template <typename Transport>
class NetworkConformance : public ::testing::Test {
 protected:
  // A stream that the server has accepted.
  struct Accepted {
    StreamLog log;
    std::string method;
    std::unique_ptr<Stream> stream;  // Loop thread only.
  };

  ~NetworkConformance() override {
    // Streams must be destroyed on their loops.
    StopServer();
    if (client_ != nullptr) client_->OnLoop([&] { streams_.clear(); });
  }

  void Start(TransportLimits limits = {}) {
    transport_ = std::make_unique<Transport>(limits);
    client_ = transport_->CreateNode();
    StartServer(Transport::ListenAddress());
  }

  void StartServer(const std::string& address) { StartServer(address, Logging()); }
  void StartServer(const std::string& address, Network::Acceptor acceptor) {
    StartServer(transport_->CreateNode(), address, std::move(acceptor));
  }
  void StartServer(std::unique_ptr<TestNode> node, const std::string& address,
                   Network::Acceptor acceptor) {
    server_ = std::move(node);
    server_->OnLoop([&] {
      const absl::StatusOr<std::string> bound =
          server_->network()->Listen(address, std::move(acceptor));
      ASSERT_TRUE(bound.ok()) << bound.status();
      address_ = *bound;
    });
  }
  Network::Acceptor Logging() {
    return [this](const std::string& method, std::unique_ptr<Stream> stream) {
      return AcceptAndLog(method, std::move(stream));
    };
  }

  void StopServer() {
    if (server_ == nullptr) return;
    server_->OnLoop([&] {
      for (const auto& accepted : accepted_) accepted->stream.reset();
    });
    server_.reset();
  }

  StreamCallbacks AcceptAndLog(const std::string& method, std::unique_ptr<Stream> stream) {
    auto accepted = std::make_shared<Accepted>();
    accepted->method = method;
    accepted->stream = std::move(stream);
    StreamCallbacks callbacks = accepted->log.Callbacks();
    MutexLock lock(&mutex_);
    accepted_.push_back(std::move(accepted));
    changed_.NotifyAll();
    return callbacks;
  }

  // Returns stream number `index` that the server accepted, from 0.
  std::shared_ptr<Accepted> WaitForAccepted(size_t index = 0) {
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    MutexLock lock(&mutex_);
    while (accepted_.size() <= index) {
      if (!changed_.WaitUntil(&mutex_, deadline)) std::abort();
    }
    return accepted_[index];
  }

  // Returns a log that outlives the streams of the test.
  StreamLog& NewLog() {
    logs_.push_back(std::make_unique<StreamLog>());
    return *logs_.back();
  }

  // Opens a stream to the server. The fixture owns the stream.
  Stream* Open(StreamLog* log) { return Open(address_, log->Callbacks()); }
  Stream* Open(const std::string& address, StreamCallbacks callbacks) {
    Stream* opened = nullptr;
    client_->OnLoop([&] {
      streams_.push_back(
          client_->network()->Open({address, 0}, kExchangeMethod, std::move(callbacks)));
      opened = streams_.back().get();
    });
    return opened;
  }

  void Close(Stream* stream) {
    client_->OnLoop(
        [&] { std::erase_if(streams_, [&](const auto& other) { return other.get() == stream; }); });
  }

  // Expects that the network still works: opens a stream and waits for its answer.
  void ExpectWorks(size_t accepted_before) {
    StreamLog& log = NewLog();
    Stream* const stream = Open(&log);
    client_->OnLoop([&] { stream->Send(NumberedMessage(77)); });
    const auto accepted = WaitForAccepted(accepted_before);
    EXPECT_EQ(accepted->log.WaitForMessages(1).at(0).number, 77u);
    server_->OnLoop([&] { accepted->stream->Send(NumberedMessage(78)); });
    EXPECT_EQ(log.WaitForMessages(1).at(0).number, 78u);
    client_->OnLoop([&] { stream->Finish(absl::OkStatus()); });
    EXPECT_EQ(log.WaitForClose(), absl::OkStatus());
    Close(stream);
  }

  // The logs outlive the nodes, because the nodes' streams write to them.
  std::vector<std::unique_ptr<StreamLog>> logs_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Accepted>> accepted_;
  std::unique_ptr<Transport> transport_;
  std::string address_;
  std::unique_ptr<TestNode> server_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<TestNode> client_;
};

}  // namespace shoal
