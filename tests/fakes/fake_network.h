#pragma once

#include <google/protobuf/message_lite.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/network.h"

namespace shoal {

// The test's end of a stream; the other end belongs to the code under test. Messages and closes of
// the test arrive in a later callback of the loop.
class FarEnd : public std::enable_shared_from_this<FarEnd> {
 public:
  FarEnd(EventLoop* loop, std::string name, std::string method)
      : name_(std::move(name)), method_(std::move(method)), loop_(loop) {}

  // Returns the near end. Call it once.
  std::unique_ptr<Stream> MakeStream() { return std::make_unique<NearEnd>(shared_from_this()); }
  void set_callbacks(StreamCallbacks callbacks) { callbacks_ = std::move(callbacks); }

  const std::string& name() const { return name_; }
  const std::string& method() const { return method_; }
  // Returns whether the code under test has destroyed its end.
  bool gone() const { return gone_; }
  // Returns whether the near end can still receive.
  bool open() const { return !gone_ && !closed_; }
  // Its certificate is for this index alone. Without the call, for any.
  void set_own_index(int index) { own_index_ = index; }
  // Returns the status with which the near end has finished.
  const std::optional<absl::Status>& finished() const { return finished_; }

  void Send(const google::protobuf::MessageLite& proto, const std::string& payload = "") {
    auto owner = std::make_shared<const std::string>(payload);
    std::vector<Slice> slices;
    if (!payload.empty()) slices.push_back({owner->data(), owner->size(), owner});
    SendMessage(MakeMessage(proto, std::move(slices)));
  }
  // Sends bytes that are not a valid message.
  void SendGarbage() { SendMessage({.fields = "\x0f\xff garbage"}); }
  void Close(absl::Status status) {
    loop_->Post([self = shared_from_this(), status] {
      if (!self->open()) return;
      self->closed_ = true;
      // The near end may be destroyed in its callback.
      const auto callback = self->callbacks_.on_closed;
      callback(status);
    });
  }

  // Says that another stream would use newer certificates.
  void SayOutdated() {
    loop_->Post([self = shared_from_this()] {
      const auto callback = self->callbacks_.on_outdated;
      if (self->open() && callback != nullptr) callback();
    });
  }

  // Returns the messages since the last call.
  template <typename Proto>
  std::vector<Proto> Take() {
    std::vector<Proto> protos;
    for (const Received& received : std::exchange(received_, {})) {
      Proto& proto = protos.emplace_back();
      EXPECT_TRUE(ParseMessage(received.message, &proto));
    }
    return protos;
  }
  // The same, each with its payload.
  template <typename Proto>
  std::vector<std::pair<Proto, std::string>> TakeWithPayload() {
    std::vector<std::pair<Proto, std::string>> protos;
    for (Received& received : std::exchange(received_, {})) {
      auto& [proto, payload] = protos.emplace_back();
      EXPECT_TRUE(ParseMessage(received.message, &proto));
      payload = std::move(received.payload);
    }
    return protos;
  }

 private:
  struct Received {
    Message message;
    std::string payload;  // its content at the time of the send
  };
  class NearEnd : public Stream {
   public:
    explicit NearEnd(std::shared_ptr<FarEnd> far) : far_(std::move(far)) {}
    ~NearEnd() override { far_->gone_ = true; }
    void Send(Message message) override {
      if (far_->finished_.has_value() || far_->closed_) return;
      std::string payload(message.payload_bytes(), '\0');
      CopyPayload(message, 0, payload.data(), payload.size());
      // Like a transport, which has not yet read the whole payload.
      for (Slice& slice : message.payload) slice = {nullptr, 0, std::move(slice.owner)};
      far_->received_.push_back({std::move(message), std::move(payload)});
    }
    // Reads all messages at once.
    void SendFrom(MessageSource source) override {
      while (std::optional<Message> message = source()) Send(*std::move(message));
    }
    void Finish(absl::Status status) override {
      if (!far_->finished_.has_value()) far_->finished_ = std::move(status);
    }
    std::string peer() const override { return far_->name_; }
    absl::Status CheckClaim(int index) const override {
      return far_->own_index_.value_or(index) == index ? absl::OkStatus()
                                                       : absl::PermissionDeniedError("claimed");
    }

   private:
    const std::shared_ptr<FarEnd> far_;
  };

  void SendMessage(Message message) {
    loop_->Post([self = shared_from_this(), message = std::move(message)] {
      if (!self->open()) return;
      const auto callback = self->callbacks_.on_message;
      callback(message);
    });
  }

  const std::string name_;
  const std::string method_;
  EventLoop* const loop_;
  StreamCallbacks callbacks_;
  std::deque<Received> received_;
  std::optional<absl::Status> finished_;
  std::optional<int> own_index_;
  bool gone_ = false;
  bool closed_ = false;
};

// A network in which the test answers every stream. Nothing listens in it.
class FakeNetwork : public Network {
 public:
  explicit FakeNetwork(EventLoop* loop) : loop_(loop) {}

  std::unique_ptr<Stream> Open(const ServerAddress& server, const std::string& method,
                               StreamCallbacks callbacks) override {
    auto far = std::make_shared<FarEnd>(loop_, server.address, method);
    far->set_callbacks(std::move(callbacks));
    opened_.push_back(far);
    if (on_open != nullptr) on_open(*far);
    return far->MakeStream();
  }
  absl::StatusOr<std::string> Listen(const std::string&, Acceptor) override {
    return absl::UnimplementedError("a fake network does not listen");
  }
  void Lend(std::shared_ptr<const SharedMemory> memory) override { lent_ = std::move(memory); }
  bool IsLookingUp(const std::string& address) const override {
    return looked_up.contains(address);
  }

  // Returns all streams so far, oldest first.
  const std::vector<std::shared_ptr<FarEnd>>& opened() const { return opened_; }
  int CountOf(const std::string& address) const {
    int count = 0;
    for (const auto& far : opened_) count += far->name() == address ? 1 : 0;
    return count;
  }
  // Returns the newest stream to an address. Ends the program if there is none.
  FarEnd& Newest(const std::string& address) const {
    for (auto far = opened_.rbegin(); far != opened_.rend(); ++far) {
      if ((*far)->name() == address) return **far;
    }
    ADD_FAILURE() << "no stream to " << address;
    std::abort();
  }

  // Returns the memory lent by the code under test; null if there is none.
  const std::shared_ptr<const SharedMemory>& lent() const { return lent_; }

  // Addresses whose host is being looked up.
  std::set<std::string> looked_up;
  // Called with each opened stream before its first use; may be empty.
  std::function<void(FarEnd&)> on_open;

 private:
  EventLoop* const loop_;
  std::vector<std::shared_ptr<FarEnd>> opened_;
  std::shared_ptr<const SharedMemory> lent_;
};

}  // namespace shoal
