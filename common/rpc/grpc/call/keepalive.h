#pragma once

namespace shoal {

// Both ends ping a silent peer. They detect a machine that vanished after 15 seconds.
struct Keepalive {
  int silence_ms = 10'000;  // silence before a ping
  int answer_ms = 5'000;    // max wait for its answer; then the peer is lost
};

}  // namespace shoal
