#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/rpc/event_loop.h"
#include "common/rpc/grpc/call/keepalive.h"
#include "common/rpc/network.h"
#include "common/rpc/tls/tls_session.h"
#include "common/rpc/transport_limits.h"

namespace shoal {

// The network of a daemon: gRPC over TCP (or "unix:PATH") on one completion queue, which is also
// the queue of its event loop. One thread, the caller of Run(), polls, reads, applies and writes.
// The network sends payloads without a copy and receives them as gRPC's slices. A server that
// listens also answers grpc.health.v1.Health.
class GrpcNetwork : public Network {
 public:
  struct Options {
    // A longer message is rejected with RESOURCE_EXHAUSTED, and its stream ends.
    int max_message_bytes = 64 << 20;
    // Max bytes that a server has received from all clients and not handed over yet. It ends
    // streams above this. Two chunks of 1 MiB from each of a thousand workers fit.
    size_t max_receiving_bytes = size_t{2} << 30;
    // Max bytes and messages queued on one stream. A stream above this ends.
    size_t max_queued_bytes = size_t{1} << 30;
    size_t max_queued_messages = 8192;
    // Max payload that sources have made and gRPC has not sent, over all streams (WriteBudget).
    size_t max_writing_bytes = kMaxWritingBytes;
    // A stream that holds a part of that for longer, while others wait, is ended.
    Time write_patience = std::chrono::seconds(5);
    // Max open streams of all clients. Above this the server ends the oldest stream that has sent
    // nothing. If all streams have sent something, it rejects the new one.
    size_t max_streams = 4096;
    // Max open streams of one connection. Further streams wait at the client. The server rejects
    // them if the client does not wait. Our clients have one stream, or two while one is ending.
    size_t max_streams_per_client = 4;
    // Max streams on which a server shares memory with a client of its machine (shared_payloads.h).
    // Each takes twice kSharedHalfBytes. Further streams use loopback.
    size_t max_shared_streams = kMaxSharedStreams;
    // Threads for Lane::kCopies; 0: one for every four cores, at least one and at most four.
    size_t copying_threads = 0;
    // Max connections of clients; fewer if the limit of open files is low (connection_acceptor.h).
    // Further connections wait. The server ends silent ones for them (client_connections.h).
    size_t max_connections = 8192;
    Keepalive keepalive;
    // Both ends of every stream show certificates, and must be permitted to use its method
    // (common/security/permissions.h). Null: plain; any program that reaches the port is a peer.
    std::shared_ptr<TlsSession> tls;
    // Called when clients can no longer connect, when they can again, and when the server ends
    // silent clients for others; on any thread. May be null.
    std::function<void(const std::string&)> warn;
  };
  // Also tunes the allocator of the process (transport_tuning.h).
  static std::unique_ptr<GrpcNetwork> Create(Options options);

  // The loop that calls all callbacks. The network owns it and ends it; it may be used until the
  // network is destroyed.
  virtual EventLoop* loop() = 0;

  // Runs the loop until its Stop(). Then ends every stream and the server within `grace`, without
  // further callbacks. It still sends queued messages, and cancels the streams that are not closed
  // in time. Cancels at once if `grace` is 0, and on destruction without Run().
  virtual void Run(Time grace = std::chrono::seconds(2)) = 0;

  // Stats of all open streams and of their queues. On the loop's thread.
  struct Stats {
    size_t streams = 0;
    size_t shared_streams = 0;  // streams with payloads in shared memory
    size_t queued_messages = 0;
    size_t queued_bytes = 0;
    // Streams that the server has rejected since its start, because the client's certificate does
    // not permit them.
    uint64_t unauthorized_streams = 0;
    // TLS handshakes that have failed since the start: the server knows no CA that has issued the
    // client's certificate, or gRPC has ended the handshake (FailedHandshakes(), which counts for
    // the whole process).
    uint64_t rejected_handshakes = 0;
  };
  virtual Stats stats() const = 0;

  // Returns OK if clients can connect, or if it does not listen. kResourceExhausted: why they
  // cannot, in one line. Any thread.
  virtual absl::Status CheckAccepting() const = 0;
};

}  // namespace shoal
