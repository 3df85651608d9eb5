#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"

namespace shoal {

// Of one message that a worker sends a ps: the largest chunk (kMaxChunkBytes of
// common/sharding/chunk_limits.h, whose test compares the two) and what is said of it.
inline constexpr size_t kMaxExchangeBytes = size_t{17} << 20;

// Both ends ask one that is silent whether it is there: a machine that vanished is noticed after 15
// seconds.
struct Keepalive {
  int silence_ms = 10'000;  // before the question
  int answer_ms = 5'000;    // until the other is taken for lost
};

// The network and event loop of a daemon: gRPC over TCP (or "unix:PATH") on one completion queue,
// and one thread, the caller of Run, that polls, reads, applies and writes. Payload is sent from
// where it lies and received as gRPC's slices. A server that listens answers grpc.health.v1.Health,
// too.
class GrpcNetwork : public EventLoop, public Network {
 public:
  struct Options {
    // A longer message is refused with RESOURCE_EXHAUSTED, and its stream ends.
    int max_message_bytes = 64 << 20;
    // What a server has received and not handed over yet, of all clients; above it streams are
    // ended. A chunk of 1 MiB of each of a thousand workers fits in twice.
    size_t max_receiving_bytes = size_t{2} << 30;
    // Bytes and messages queued on one stream, beyond which it is ended.
    size_t max_queued_bytes = size_t{1} << 30;
    size_t max_queued_messages = 8192;
    // Payload made by sources, handed to gRPC and not sent yet, over all streams (WriteBudget).
    size_t max_writing_bytes = size_t{256} << 20;
    // How long a stream may hold a part of that while others wait; then it is ended.
    Time write_patience = std::chrono::seconds(5);
    // Streams that clients may have open at once. Where there are more, the oldest that has said
    // nothing is ended; where all have, the new one is refused.
    size_t max_streams = 4096;
    // Of them, on one connection: a client's further ones wait, and are refused where it does not
    // wait. Ours have one, or two while one is ending.
    size_t max_streams_per_client = 4;
    // Streams on which a server shares memory with a client of its machine (shared_payloads.h),
    // twice kSharedHalfBytes each; what is beyond goes through loopback.
    size_t max_shared_streams = 16;
    // For Lane::kCopies; 0: one for every four cores, but one at least and four at most.
    size_t copying_threads = 0;
    // Connections of clients, of which there may be fewer where the limit of open files is low
    // (connection_acceptor.h). More have to wait, for silent ones to be ended if there are any
    // (client_connections.h).
    size_t max_connections = 8192;
    Keepalive keepalive;
    // Told when clients cannot connect any more and when they can again, and when silent ones are
    // ended for others; on any thread. May be null.
    std::function<void(const std::string&)> warn;
  };
  // Tunes the process's allocator for it too (transport_tuning.h).
  static std::unique_ptr<GrpcNetwork> Create(Options options);

  // Runs callbacks until Stop. Then ends every stream and the server within `grace`, without
  // further callbacks: in order where the peer plays along (what is queued is still sent), else by
  // cancelling. With 0, and on destruction without Run, cancels at once.
  virtual void Run(Time grace = std::chrono::seconds(2)) = 0;

  // All streams that are open, and what waits on them to be sent. On the loop's thread.
  struct Figures {
    size_t streams = 0;
    size_t shared_streams = 0;  // whose payloads lie in memory of both ends
    size_t queued_messages = 0;
    size_t queued_bytes = 0;
  };
  virtual Figures figures() const = 0;

  // Why clients that connect now are kept waiting, in a line; empty when they are not. Any thread.
  virtual std::string Deaf() const = 0;
};

}  // namespace shoal
