#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"
#include "common/rpc/methods.h"
#include "common/rpc/shared/shared_memory.h"

namespace shoal {

// Makes messages one at a time, each at the moment at which it can be written; nothing: there are
// no more. Called on the loop; may not touch the stream that asks it.
using MessageSource = std::function<std::optional<Message>()>;

// A source of one message, or of none where `make` returns nothing.
template <typename Make>
MessageSource SourceOf(Make make) {
  return [make = std::move(make), made = false]() mutable -> std::optional<Message> {
    if (std::exchange(made, true)) return std::nullopt;
    return make();
  };
}

// One end of a long two-way stream of messages; ordered, and broken as a whole. Loop thread only.
// It may be destroyed at any time, in its own callbacks too, and no callback comes after that.
// Destroying it before Finish cancels the call, and the peer's on_closed says kUnavailable; after
// Finish, what is queued is still sent.
class Stream {
 public:
  virtual ~Stream() = default;

  // Queues a message. What is queued when the stream breaks is lost without a word. A peer that
  // does not read, so that more than the network's queue cap is waiting, gets its stream closed,
  // and so does a message above the cap (kResourceExhausted). No effect after Finish or on_closed.
  virtual void Send(Message message) = 0;
  // Sends what `source` makes, when nothing of Send and of the sources given before is waiting. Of
  // a message that waits for a slow peer, or for a turn among many streams, there is only the
  // source: it is made when it can be written, perhaps in this call. For everything that is large,
  // or that a peer may ask for without reading it. Sources count as messages in the queue cap; what
  // they make is capped as by Send. Dropped when this end finishes or breaks.
  virtual void SendFrom(MessageSource source) = 0;
  // Client: with OK, no more messages come from here. When the server has received all, its end
  // finishes with OK by itself, unless it has finished before or wants to decide that
  // (on_half_closed); what it sends until then still comes. With an error, cancels the call:
  // on_closed brings that error here, kUnavailable to the server. Server: receives no more, sends
  // what is queued, then ends the call with `status`. on_closed follows on both ends, as a later
  // callback.
  virtual void Finish(absl::Status status) = 0;
  // Address of the other end, for messages to people.
  virtual std::string peer() const = 0;
};

// What happens to a stream. Called on the loop, after the call that created the stream has
// returned.
struct StreamCallbacks {
  std::function<void(Message)> on_message;
  // Server: the client will send no more, as one that makes a unary call says at once. Who answers
  // later gives this, and finishes the stream; without it the stream finishes with OK when all that
  // was sent until now, by sources too, is written.
  std::function<void()> on_half_closed = nullptr;
  // The last callback: the status with which the server finished, else why the stream broke
  // (kUnavailable: not reachable or lost, naming the peer).
  std::function<void(absl::Status)> on_closed;
};

// Streams between tasks. One implementation speaks gRPC, one connects tasks of one process.
// Loop thread only.
class Network {
 public:
  virtual ~Network() = default;

  // Opens a stream to "/shoal.proto.ParameterServer/Exchange" at `address`. Returns at once; what
  // goes wrong comes as on_closed. Sends may be queued at once.
  virtual std::unique_ptr<Stream> Open(const std::string& address, const std::string& method,
                                       StreamCallbacks callbacks) = 0;
  // The system is being asked which addresses the host in `address` has, and has not said yet.
  virtual bool IsLookingUp(const std::string& /*address*/) const { return false; }
  // Payloads that lie in `memory` may be read there by peers of this machine, on streams that are
  // opened from now on, instead of being copied. They stay as they are until their owners are
  // released; after the end of a stream, also until the peer has sent something on another one, as
  // it may be reading one when the stream ends. What was lent before is not any more; null:
  // nothing.
  virtual void Lend(std::shared_ptr<const SharedMemory> /*memory*/) {}
  // Of the address space, where it is limited, so many bytes stay free: streams share memory only
  // where there is more. Until this is called they share none there (SharedMemoryRoom).
  virtual void KeepFree(uint64_t /*bytes*/) {}

  // Decides over a stream that a client opened: takes it and returns its callbacks, or returns an
  // error, with which it is ended. The stream is usable once the function has returned.
  using Acceptor = std::function<absl::StatusOr<StreamCallbacks>(const std::string& method,
                                                                 std::unique_ptr<Stream> stream)>;
  // Listens at `address` ("127.0.0.1:0" takes a free port); the bound address comes back. Once per
  // Network. Errors name the address and what to do (another port).
  virtual absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) = 0;
};

}  // namespace shoal
