#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "tests/common/rpc/payload.h"
#include "tests/common/rpc/test_node.h"

namespace shoal {

// Returns a push of this step. The payload's owner is a copy.
inline Message NumberedMessage(uint64_t step, std::string payload = "") {
  proto::ExchangeRequest request;
  request.mutable_push()->set_step(step);
  return MakeMessage(request, {OwnedSlice(std::move(payload))});
}

inline uint64_t NumberOf(const Message& message) {
  proto::ExchangeRequest request;
  EXPECT_TRUE(ParseMessage(message, &request));
  return request.push().step();
}

// Records the callbacks of a stream. Must outlive the stream. Thread-safe.
class StreamLog {
 public:
  struct Entry {
    uint64_t number;
    std::string payload;
  };

  // Returns callbacks that write to this log.
  StreamCallbacks Callbacks() {
    return {.on_message =
                [this](Message message) {
                  Entry entry{NumberOf(message), PayloadOf(message)};
                  MutexLock lock(&mutex_);
                  EXPECT_FALSE(closed_) << "a message after on_closed";
                  entries_.push_back(std::move(entry));
                  changed_.NotifyAll();
                },
            .on_closed =
                [this](absl::Status status) {
                  MutexLock lock(&mutex_);
                  EXPECT_FALSE(closed_) << "on_closed twice";
                  closed_ = std::move(status);
                  changed_.NotifyAll();
                }};
  }

  // Waits until there are `count` messages in total.
  std::vector<Entry> WaitForMessages(size_t count) {
    MutexLock lock(&mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    while (entries_.size() < count && !closed_) {
      if (!changed_.WaitUntil(&mutex_, deadline)) break;
    }
    EXPECT_GE(entries_.size(), count)
        << (closed_ ? "closed: " + closed_->ToString() : "waited in vain");
    return entries_;
  }

  // Waits for on_closed.
  absl::Status WaitForClose() {
    MutexLock lock(&mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
    while (!closed_) {
      if (!changed_.WaitUntil(&mutex_, deadline)) return absl::UnknownError("waited in vain");
    }
    return *closed_;
  }

  bool open() {
    MutexLock lock(&mutex_);
    return !closed_;
  }

  std::vector<Entry> entries() {
    MutexLock lock(&mutex_);
    return entries_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
