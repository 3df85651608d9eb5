#pragma once

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Notifications to the service manager that started the daemon (systemd, units of Type=notify).
// Each is one datagram to the socket in $NOTIFY_SOCKET. Without the variable, nothing is sent.
// Errors state what was not sent; the daemon continues.

// Sends READY=1. If $WATCHDOG_USEC is set, then also sends WATCHDOG=1 twice in each such period
// while `loop` runs. If the loop hangs, the service manager gets none and restarts the daemon. Call
// it on the loop's thread, or before the loop runs.
absl::Status NotifyReady(EventLoop* loop);

// Sends STOPPING=1: the daemon ends by itself soon. Thread-safe.
absl::Status NotifyStopping();

}  // namespace shoal
