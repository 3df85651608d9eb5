#pragma once

#include <functional>
#include <utility>

#include "common/rpc/scope.h"

namespace shoal {

// Calls one function in a later turn of the loop. A part raises it after a fact has changed. This
// way the function never runs inside the part. Destruction cancels a pending call. Loop thread
// only.
class Wakeup {
 public:
  // The change since the last call. kReports: only reports of some workers. This keeps the cost of
  // a report independent of the number of workers.
  enum class Cause { kReports, kFacts };
  // `loop` must outlive this. `function` gets the widest cause of all raises since its last call.
  Wakeup(EventLoop* loop, std::function<void(Cause)> function)
      : loop_(loop), function_(std::move(function)), scope_(loop) {}

  // Schedules one call, unless one is pending. The function itself may raise it again.
  void Raise(Cause cause = Cause::kFacts) {
    if (cause == Cause::kFacts) cause_ = cause;
    if (std::exchange(raised_, true)) return;
    loop_->Post(scope_.Guard([this] {
      raised_ = false;
      function_(std::exchange(cause_, Cause::kReports));
    }));
  }

 private:
  EventLoop* const loop_;
  const std::function<void(Cause)> function_;
  bool raised_ = false;
  Cause cause_ = Cause::kReports;
  Scope scope_;
};

}  // namespace shoal
