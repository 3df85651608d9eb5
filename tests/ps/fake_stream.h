#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/network.h"

namespace shoal {

// A loop that the test turns: nothing runs until Run.
class FakeLoop : public EventLoop {
 public:
  Time Now() const override { return Time(0); }
  TimerId CallAfter(Time, std::function<void()>) override { return 1; }
  void CancelTimer(TimerId) override {}
  void Post(std::function<void()> callback) override { posted_.push_back(std::move(callback)); }
  void Offload(std::function<void()> work, std::function<void()> done) override {
    offloaded_.emplace_back(std::move(work), std::move(done));
  }
  void Stop() override {}

  // Runs what is posted, but nothing that was offloaded.
  void RunPosted() {
    while (!posted_.empty()) {
      const std::function<void()> callback = std::move(posted_.front());
      posted_.pop_front();
      callback();
    }
  }
  // One piece of offloaded work, then what follows from it; false when there is none.
  bool RunOneOffloaded() {
    RunPosted();
    if (offloaded_.empty()) return false;
    const auto [work, done] = std::move(offloaded_.front());
    offloaded_.pop_front();
    work();
    done();
    RunPosted();
    return true;
  }
  void Run() {
    while (RunOneOffloaded()) {
    }
  }

 private:
  std::deque<std::function<void()>> posted_;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> offloaded_;
};

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
