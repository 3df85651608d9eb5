#pragma once

#include <optional>
#include <vector>

#include "common/rpc/event_loop.h"

namespace shoal {

// Returns the signals that stop this process cleanly: SIGTERM, and SIGHUP and SIGINT unless
// ignored. nohup ignores SIGHUP for its program, and a script ignores SIGINT for its background
// jobs. An ignored signal would still arrive if it were blocked and then read. SIGTERM always
// counts, because a supervisor has no other way to request a stop. Call this before setting
// handlers for them.
std::vector<int> StopSignals();

// Separates a repeated request to stop from one request that arrives twice. timeout(1) signals its
// child and then the child's process group, so the same request arrives twice within microseconds.
// systemd's SendSIGHUP sends SIGHUP after SIGTERM. Not thread-safe.
class StopRequests {
 public:
  // Call for a stop signal at time `now`. Returns true if it is a new request, the first or a later
  // one. Returns false if it repeats the first within a second.
  bool IsNew(Time now);

 private:
  std::optional<Time> first_;
};

}  // namespace shoal
