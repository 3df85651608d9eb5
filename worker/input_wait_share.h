#pragma once

#include <string>

#include "common/rpc/event_loop.h"

namespace shoal {

// Notices which share of its time a worker waits for data, and when that changes what to do about
// it. A plain state machine over the time that steps take; not thread-safe.
class InputWaitShare {
 public:
  // A step is over: it took `took`, of which it waited for its batch for `waited`. What to log, a
  // sentence; mostly empty: it is said over each minute of steps whether a tenth of it was waited,
  // the first time and when the answer is another.
  std::string StepDone(Time waited, Time took);

 private:
  Time waited_ = {};
  Time took_ = {};
  enum class Said { kNothing, kSmall, kLarge } said_ = Said::kNothing;
};

}  // namespace shoal
