#pragma once

#include <functional>
#include <utility>

#include "common/rpc/scope.h"

namespace shoal {

// Calls one function in a later turn of the loop, once for any number of calls of Raise before.
// Parts raise it where a fact has changed. The function therefore never runs within one of them.
// Loop thread only.
class Wakeup {
 public:
  // `loop` outlives this.
  Wakeup(EventLoop* loop, std::function<void()> function)
      : loop_(loop), function_(std::move(function)), scope_(loop) {}

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
