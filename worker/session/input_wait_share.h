#pragma once

#include <string>

#include "common/rpc/event_loop.h"

namespace shoal {

// Measures the share of its time that a worker waits for data, and reports a change with a remedy.
// A plain state machine over the durations of steps; not thread-safe.
class InputWaitShare {
 public:
  // Reports a step that took `took`, including a wait of `waited` for its batch. Returns a sentence
  // to log, mostly empty. Each minute of steps it decides whether the wait was at least a tenth of
  // the time. It reports the first answer and each change.
  std::string StepDone(Time waited, Time took);

 private:
  Time waited_ = {};
  Time took_ = {};
  enum class Share { kUnknown, kSmall, kLarge };
  Share reported_ = Share::kUnknown;
};

}  // namespace shoal
