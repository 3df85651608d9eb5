#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "common/rpc/event_loop.h"

namespace shoal {

// One direction of the link between a host and the centre of a star: a queue in front of a wire. It
// has no clock: given the time at which a packet comes, it returns when the packet arrives. Not
// thread-safe.
class EmulatedLink {
 public:
  struct Options {
    int64_t bits_per_second = 0;  // above 0
    Time delay{};                 // of each packet after its last bit is on the wire
    Time jitter{};                // at most this much extra delay, uniformly; keeps the order
    double loss = 0;              // fraction of lost packets, in [0, 1)
    uint64_t seed = 0;            // for jitter and loss
  };
  explicit EmulatedLink(const Options& options) : options_(options), random_(options.seed) {}

  // Returns when a packet that comes at `now` has arrived. Requires that `now` does not decrease.
  // Returns nullopt if the packet is lost, or dropped because the queue already holds kMaxQueued of
  // wire time.
  std::optional<Time> Send(Time now, int64_t size_bytes);

  struct Counts {
    uint64_t bytes = 0;  // delivered
    uint64_t packets = 0;
    uint64_t lost = 0;
    uint64_t dropped = 0;
  };
  const Counts& counts() const { return counts_; }

  // As deep as the queue of a home router, so that TCP fills it and waits.
  static constexpr Time kMaxQueued = std::chrono::milliseconds(100);

 private:
  const Options options_;
  std::mt19937_64 random_;
  Time wire_free_{};     // when the queue will be empty
  Time last_arrival_{};  // of the last packet
  Counts counts_;
};

}  // namespace shoal
