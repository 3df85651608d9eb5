#pragma once

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// What a daemon tells the service manager that started it (systemd, units of Type=notify): one
// datagram a word to the socket that $NOTIFY_SOCKET names. Without the variable nothing is told.
// Errors say what could not be sent; the daemon goes on.

// READY=1; from then on, when $WATCHDOG_USEC is set, WATCHDOG=1 twice in that time for as long as
// `loop` runs: a loop that hangs falls silent, and the service manager starts the daemon again. On
// the loop's thread or before it runs.
absl::Status NotifyReady(EventLoop* loop);

// STOPPING=1: the daemon ends by itself soon. Thread-safe.
absl::Status NotifyStopping();

}  // namespace shoal
