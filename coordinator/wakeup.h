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
  // `loop` must outlive this.
  Wakeup(EventLoop* loop, std::function<void()> function)
      : loop_(loop), function_(std::move(function)), scope_(loop) {}

  // Schedules one call, unless one is pending. The function itself may raise it again.
  void Raise() {
    if (std::exchange(raised_, true)) return;
    loop_->Post(scope_.Guard([this] {
      raised_ = false;
      function_();
    }));
  }

 private:
  EventLoop* const loop_;
  const std::function<void()> function_;
  bool raised_ = false;
  Scope scope_;
};

}  // namespace shoal
