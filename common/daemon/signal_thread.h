#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/daemon/stop_signals.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Turns StopSignals() into calls of a function on a thread, which may do everything that a signal
// handler must not. Create it in main() before any other thread, because it blocks the signals in
// all threads that start later. A library's thread from before main() passes them on. It ignores
// SIGPIPE, so that a write to a lost peer returns an error instead. A process has at most one at a
// time. The destructor restores the caller's signal mask. A forked child process inherits the
// blocked signals and must unblock them.
class SignalThread {
 public:
  // `now` returns a steady time, for StopRequests.
  explicit SignalThread(std::function<Time()> now = SteadyNow);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // Calls `handler(count)` for every new signal (StopRequests); count is 1 for the first. Calls are
  // on the signal thread, one after another. Reports earlier signals at once, on the calling
  // thread. When this returns, the previous handler no longer runs. An empty handler disables
  // calls.
  void SetHandler(std::function<void(int count)> handler);

 private:
  static Time SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }
  void Run();

  const std::function<Time()> now_;
  sigset_t signals_;
  sigset_t previous_mask_;
  std::vector<std::pair<int, struct sigaction>> previous_actions_;
  // Held while the handler runs. A handler must therefore not call SetHandler().
  Mutex mutex_;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  StopRequests requests_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;     // new signals received
  int reported_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, reported to a handler
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace shoal
