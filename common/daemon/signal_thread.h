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

// Turns StopSignals() into calls of a function, on a thread where everything is allowed that a
// signal handler must not do. Create it in main() before any other thread: the signals are blocked
// in all threads started afterwards; a thread that a library has started before main() passes them
// on. SIGPIPE is ignored: a write to a peer that is gone returns an
// error instead. There is one at a time in a process; the destructor gives the caller its signal
// mask back. A child process that is forked inherits the blocked signals and must unblock them.
class SignalThread {
 public:
  // `now`: a steady time, for StopRequests.
  explicit SignalThread(std::function<Time()> now = SteadyNow);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // Has `handler(count)` called for every signal that is new (StopRequests), count being 1 for the
  // first, on the signal thread, calls one after another. Signals that came before are reported at
  // once, on the calling thread. When this returns, the handler set before is no longer running; an
  // empty handler sets none.
  void SetHandler(std::function<void(int count)> handler);

 private:
  static Time SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }
  void Run();

  const std::function<Time()> now_;
  sigset_t signals_;
  sigset_t previous_mask_;
  std::vector<std::pair<int, struct sigaction>> previous_actions_;
  // Held while the handler runs: a handler must not call SetHandler().
  Mutex mutex_;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  StopRequests requests_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;     // signals received that are new
  int reported_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, told to a handler
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace shoal
