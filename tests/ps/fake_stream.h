#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/network.h"

namespace shoal {

// What the other end of a FakeStream has got.
struct Received {
  std::deque<Message> messages;
  std::optional<absl::Status> finished;
  bool destroyed = false;
};

// The server's end of a stream, whose client is the test.
class FakeStream : public Stream {
 public:
  explicit FakeStream(std::shared_ptr<Received> received) : received_(std::move(received)) {}
  ~FakeStream() override { received_->destroyed = true; }

  void Send(Message message) override { received_->messages.push_back(std::move(message)); }
  void Finish(absl::Status status) override { received_->finished = std::move(status); }
  std::string peer() const override { return "test"; }

 private:
  const std::shared_ptr<Received> received_;
};

}  // namespace shoal
