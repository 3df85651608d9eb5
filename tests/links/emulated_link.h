#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "common/rpc/event_loop.h"

namespace shoal {

// One direction of a host's way to the middle of a star: a queue before a wire. Has no clock: told
// when a packet comes, it says when that is at the other end. Not thread-safe.
class EmulatedLink {
 public:
  struct Options {
    int64_t bits_per_second = 0;  // above 0
    Time delay{};                 // of every packet, after the last bit is on the wire
    Time jitter{};                // up to so much more, evenly; packets stay in order
    double loss = 0;              // share of packets that are lost, in [0, 1)
    uint64_t seed = 0;            // of jitter and loss
  };
  explicit EmulatedLink(const Options& options) : options_(options), random_(options.seed) {}

  // When a packet that comes at `now`, no earlier than the one before, has arrived; nullopt when it
  // is lost, or dropped because the queue holds as much as the wire takes in kMaxQueued.
  std::optional<Time> Send(Time now, int64_t size_bytes);

  struct Counts {
    uint64_t bytes = 0;  // that went through
    uint64_t packets = 0;
    uint64_t lost = 0;
    uint64_t dropped = 0;
  };
  const Counts& counts() const { return counts_; }

  // As deep as home routers' queues are, so that TCP fills it and waits.
  static constexpr Time kMaxQueued = std::chrono::milliseconds(100);

 private:
  const Options options_;
  std::mt19937_64 random_;
  Time wire_free_{};     // when all that was queued is on the wire
  Time last_arrival_{};  // of the packet before
  Counts counts_;
};

}  // namespace shoal
