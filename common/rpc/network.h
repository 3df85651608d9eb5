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

namespace shoal {

class SharedMemory;
struct Certificate;

// Makes messages one at a time, each when the stream can write it. Returns nothing if there are no
// more. Called on the loop; must not touch the stream that calls it.
using MessageSource = std::function<std::optional<Message>()>;

// Returns a source of the message that `make` returns, or of no message if it returns nothing.
template <typename Make>
MessageSource SourceOf(Make make) {
  return [make = std::move(make), made = false]() mutable -> std::optional<Message> {
    if (std::exchange(made, true)) return std::nullopt;
    return make();
  };
}

// One end of a long two-way stream of messages. It keeps their order, and breaks as a whole. Loop
// thread only. The owner may destroy it at any time, even in its own callbacks; no callback
// follows. Destruction before Finish() cancels the call, and the peer's on_closed gets
// kUnavailable. After Finish(), queued messages are still sent.
class Stream {
 public:
  virtual ~Stream() = default;

  // Queues a message. Queued messages are lost without a report if the stream breaks. The stream
  // ends with kResourceExhausted if the queue or the message exceeds the network's max. No effect
  // after Finish() or on_closed.
  virtual void Send(Message message) = 0;
  // Sends the messages that `source` makes, after all messages of Send() and of earlier sources.
  // The source makes a message when the stream can write it, perhaps in this call. A message that
  // waits for a slow peer or for its turn therefore takes no memory. Use it for large messages, and
  // for messages that a peer may request without reading them. A source counts as one message in
  // the queue; its messages have the same max size. Drops the source if this end finishes or
  // breaks.
  virtual void SendFrom(MessageSource source) = 0;
  // Client, with OK: sends no more after the queue. When the server has received all messages, its
  // end finishes with OK by itself, unless it has finished before or has on_half_closed. Its
  // messages until then still arrive. Client, with an error: cancels the call. on_closed gets that
  // error here, and kUnavailable at the server. Server: receives no more, sends the queue, then
  // ends the call with `status`. on_closed follows on both ends, as a later callback.
  virtual void Finish(absl::Status status) = 0;
  // Server: the client has shown that it may send large messages. From now on their max size is the
  // method's max_trusted_request_bytes (MethodTraits). No effect at a client's end, after the end
  // of the stream, or in a network that limits no requests.
  virtual void TrustClient() {}
  // Returns the address of the other end, for texts.
  virtual std::string peer() const = 0;
  // Server: returns the client's certificate, which may use the method. Null without TLS.
  virtual const Certificate* client() const { return nullptr; }
  // Server: the client says in a message that it has this index. Returns OK if its certificate is
  // for that index, or for any, and without TLS. Else kPermissionDenied: the network has counted
  // and logged it, and the caller ends the stream.
  virtual absl::Status CheckClaim(int /*index*/) const { return absl::OkStatus(); }
};

// The events of a stream. Called on the loop, after the call that created the stream has returned.
struct StreamCallbacks {
  std::function<void(Message)> on_message;
  // Server: the client sends no more. A unary call gets this right after its request. An owner that
  // answers later sets this callback, and finishes the stream itself. Without it, the stream
  // finishes with OK when all messages until now, also those of sources, are written.
  std::function<void()> on_half_closed = nullptr;
  // Client: another stream to this server would use a newer certificate, of this process or of the
  // server. Called each second while that is so. The server may end this stream soon, so
  // ReconnectingStream opens the next one. May be null.
  std::function<void()> on_outdated = nullptr;
  // The last callback. It gets the status with which the server finished, or why the stream broke.
  // kUnavailable: the peer is not reachable, or is lost; the text names it.
  std::function<void(absl::Status)> on_closed;
};

// The server that a stream goes to.
struct ServerAddress {
  // Implicit: most servers are no ps, and have an address alone.
  ServerAddress(std::string text, std::optional<int> index = std::nullopt)
      : address(std::move(text)), ps(index) {}

  std::string address;    // "127.0.0.1:2222"
  std::optional<int> ps;  // the index of the ps there, for TLS; nothing: it is no ps
};

// Streams between tasks. One implementation uses gRPC, another connects tasks of one process.
// Loop thread only.
class Network {
 public:
  virtual ~Network() = default;

  // Opens a stream for `method` ("/shoal.proto.ParameterServer/Exchange") to `server`. Returns at
  // once; on_closed reports errors. The stream queues messages at once.
  virtual std::unique_ptr<Stream> Open(const ServerAddress& server, const std::string& method,
                                       StreamCallbacks callbacks) = 0;
  // Whether the system is still looking up the host of `address`.
  virtual bool IsLookingUp(const std::string& /*address*/) const { return false; }
  // Lends `memory` to peers of this machine, on streams that open from now on. They read payloads
  // that lie in it in place, without a copy. A payload must not change until its owners are
  // released. After the end of a stream it must also not change until the peer has sent a message
  // on another stream, because the peer may be reading when the stream ends. Replaces the memory
  // that was lent before; null: lends none.
  virtual void Lend(std::shared_ptr<const SharedMemory> /*memory*/) {}
  // Keeps this many bytes of a limited address space free: streams share memory only if there is
  // more. Before this call they share none if there is a limit (SharedMemoryRoom).
  virtual void KeepFree(uint64_t /*bytes*/) {}

  // Decides whether to accept a new stream of a client. Returns the callbacks of an accepted
  // stream. An error rejects the stream, and the client gets it. The stream is usable once the
  // function has returned.
  using Acceptor = std::function<absl::StatusOr<StreamCallbacks>(const std::string& method,
                                                                 std::unique_ptr<Stream> stream)>;
  // Listens at `address` ("127.0.0.1:0" takes a free port). Returns the bound address. Once per
  // network. Errors name the address and the remedy, such as another port.
  virtual absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) = 0;
};

}  // namespace shoal
