#pragma once

#include <signal.h>

#include <functional>
#include <utility>
#include <vector>

#include "cli/local_cluster/descriptor_watch.h"

namespace shoal {

// Signals as callbacks on the event loop, whichever thread they are delivered to: libraries have
// threads that cannot be told to block them, as CUDA's. Nothing may ignore or await these signals
// elsewhere while this lives. One at a time in a process; loop thread only.
class SignalWatch {
 public:
  // `on_signal(number)` once for each signal that arrives (several equal ones may come as one), in
  // the order of `signals` where different ones do. They are unblocked in this thread. `watch`
  // outlives this.
  SignalWatch(DescriptorWatch* watch, const std::vector<int>& signals,
              std::function<void(int)> on_signal);
  // The signals act as before, and are blocked where they were.
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
