#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/network.h"

namespace shoal {

// Records the messages that the other end of a FakeStream has received.
struct Received {
  std::deque<Message> messages;
  // False: this end does not read, so its sources make no messages.
  bool reads = true;
  std::deque<MessageSource> sources;
  std::optional<absl::Status> finished;
  bool trusted = false;          // the ps trusts this client
  std::optional<int> own_index;  // the only one that its certificate is for
  bool destroyed = false;

  // Reads all pending messages and all later ones.
  void Read() {
    reads = true;
    while (ReadOne()) {
    }
  }
  // Reads one message of a source. Returns false if there is none.
  bool ReadOne() {
    while (!sources.empty()) {
      if (std::optional<Message> message = sources.front()()) {
        messages.push_back(*std::move(message));
        return true;
      }
      sources.pop_front();
    }
    return false;
  }
};

// The server's end of a stream; the test is the client.
class FakeStream : public Stream {
 public:
  explicit FakeStream(std::shared_ptr<Received> received) : received_(std::move(received)) {}
  ~FakeStream() override {
    received_->sources.clear();
    received_->destroyed = true;
  }

  void Send(Message message) override { received_->messages.push_back(std::move(message)); }
  void SendFrom(MessageSource source) override {
    received_->sources.push_back(std::move(source));
    if (received_->reads) received_->Read();
  }
  void Finish(absl::Status status) override {
    received_->sources.clear();
    received_->finished = std::move(status);
  }
  void TrustClient() override { received_->trusted = true; }
  std::string peer() const override { return "test"; }
  absl::Status CheckClaim(int index) const override {
    return received_->own_index.value_or(index) == index ? absl::OkStatus()
                                                         : absl::PermissionDeniedError("claimed");
  }

 private:
  const std::shared_ptr<Received> received_;
};

}  // namespace shoal
