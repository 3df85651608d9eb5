#pragma once

#include <cstdint>
#include <string>

#include "common/rpc/event_loop.h"

namespace shoal {

// One fault, planned before the simulation starts.
struct Fault {
  enum class Kind {
    kKill,                 // kill -9 of a task, at once
    kKillAfterCallbacks,   // the same after `count` more callbacks
    kKillAtFileOperation,  // the same at its `count`th file operation
    kFreeze,               // SIGSTOP for `duration`
    kReplace,              // freezes it and starts another process; continues after `duration`
    kSecond,               // starts another process while the first one lives on
    kBreakStreams,         // breaks all streams of a task
    kCut,                  // blocks messages from `task` to `other` for `duration`
    kCutBoth,              // the same in both directions
    kSlowLinks,            // messages from and to a task take up to `latency`
    kSlowReader,           // a task takes up to `latency` to receive a message
    kDrain,                // SIGTERM
    kDrainAll,             // SIGTERM to all tasks at once
    kPowerLoss,            // kills all tasks on the disk, which loses its unsynced data
    kDiskFull,
    kDiskReadOnly,
    kDiskSlow,    // an operation takes up to `latency`
    kDamage,      // changes a byte of the newest checkpoint, if there is another one
    kRestartAll,  // kills all, or all but the ps; back with `count` ps
    kChangeJob,   // kills coordinator and ps; back with the job of Workload::next
    // A task gets new certificates. Unless 0, servers end its streams that are still old after
    // `duration`.
    kNewCertificates,
  };
  Kind kind = Kind::kKill;
  Time at{};         // since the start
  std::string task;  // "chief", "ps0", "worker1"
  std::string other;
  Time duration{};  // of the fault; of a kill: until the restart
  Time latency{};
  uint64_t count = 0;
};

// Returns the name of the kind in the trace.
const char* NameOf(Fault::Kind kind);

}  // namespace shoal
