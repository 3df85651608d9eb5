#pragma once

#include <csignal>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace shoal {

// Turns SIGTERM and SIGINT into calls of a function, on a thread where everything is allowed that a
// signal handler must not do. Create it in main() before any other thread: the signals are blocked
// in all threads started afterwards; a thread that a library has started before main() passes them
// on. SIGPIPE is ignored: a write to a peer that is gone returns an
// error instead. There is one at a time in a process; the destructor gives the caller its signal
// mask back. A child process that is forked inherits the blocked signals and must unblock them.
class SignalThread {
 public:
  SignalThread();
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // Has `handler(count)` called for every signal, count being 1 for the first, on the signal
  // thread, calls one after another. Signals that came before are reported at once, on the calling
  // thread. When this returns, the handler set before is no longer running; an empty handler sets
  // none.
  void SetHandler(std::function<void(int count)> handler);

 private:
  void Run();

  sigset_t signals_;
  sigset_t previous_mask_;
  struct sigaction previous_term_ = {};
  struct sigaction previous_int_ = {};
  // Held while the handler runs: a handler must not call SetHandler().
  Mutex mutex_;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;     // signals received
  int reported_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, told to a handler
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace shoal
