#pragma once

#include <optional>
#include <vector>

#include "common/rpc/event_loop.h"

namespace shoal {

// The signals that end this process in order: SIGTERM, and of SIGHUP and SIGINT those that are not
// ignored. nohup ignores SIGHUP for what it starts, a script SIGINT for what it puts in the
// background, and an ignored signal that is blocked to be read would come all the same. SIGTERM
// counts always: who supervises has no other way to ask. Before handlers are set for them.
std::vector<int> StopSignals();

// Tells a stop that is asked for again from one that was told twice: timeout(1) signals its child
// and then the child's process group, so that the same stop comes twice within microseconds, and
// systemd's SendSIGHUP has SIGHUP follow SIGTERM. Not thread-safe.
class StopRequests {
 public:
  // A stop signal came at `now`; true when it asks for a stop, or asks for it again, false when it
  // repeats the first within a second.
  bool IsNew(Time now);

 private:
  std::optional<Time> first_;
};

}  // namespace shoal
