#pragma once

#include <signal.h>

#include <functional>
#include <utility>
#include <vector>

#include "cli/local_cluster/descriptor_watch.h"

namespace shoal {

// Delivers signals as callbacks on the event loop, on whichever thread they arrive. Blocking them
// in all threads is impossible, because libraries such as CUDA start threads of their own. While
// this lives, no other code may ignore or await these signals. At most one instance per process;
// loop thread only.
class SignalWatch {
 public:
  // Calls `on_signal(number)` once for each signal that arrives. Several equal signals may count as
  // one; different ones come in the order of `signals`. Unblocks the signals in this thread.
  // `watch` must outlive this.
  SignalWatch(DescriptorWatch* watch, const std::vector<int>& signals,
              std::function<void(int)> on_signal);
  // Restores the previous actions and the signal mask.
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void Read();

  DescriptorWatch* const watch_;
  const std::vector<int> signals_;
  const std::function<void(int)> on_signal_;
  const int descriptor_;  // an eventfd that is readable once a signal has arrived
  std::vector<std::pair<int, struct sigaction>> previous_actions_;
  sigset_t previous_mask_;
};

}  // namespace shoal
