#pragma once

#include <functional>
#include <vector>

#include "cli/local_cluster/descriptor_watch.h"

namespace shoal {

// Signals as callbacks on the event loop. The signals have to be blocked in every thread: call
// BlockSignals in main before any thread is started. Loop thread only.
class SignalWatch {
 public:
  static void BlockSignals(const std::vector<int>& signals);

  // `on_signal(number)` once for each signal that arrives (several equal ones may come as one).
  // `watch` outlives this.
  SignalWatch(DescriptorWatch* watch, const std::vector<int>& signals,
              std::function<void(int)> on_signal);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  void Read();

  DescriptorWatch* const watch_;
  const int descriptor_;
  const std::function<void(int)> on_signal_;
};

}  // namespace shoal
