#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/rpc/event_loop.h"

namespace shoal {

// The lifetime of an object that waits for callbacks. After its end no callback runs. Make it the
// last member, so that it ends first. Loop thread only, except that any thread may call Guard while
// the scope lives.
class Scope {
 public:
  // `loop` must outlive the scope.
  explicit Scope(EventLoop* loop) : loop_(loop) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { *alive_ = false; }

  // Returns a callback that calls `callback`, but does nothing once the scope has ended. The
  // returned callback must run on the loop's thread, but any thread may copy and destroy it.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [alive = alive_, callback = std::move(callback)](auto&&... arguments) mutable {
      if (*alive) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // Runs `work` off the loop in that lane, then `done` with its result on the loop. Skips `done` if
  // the scope has ended by then. `work` runs in any case, so it must not use objects that end with
  // the scope.
  template <typename Work, typename Done>
  void Offload(Lane lane, Work work, Done done) const {
    using Result = std::invoke_result_t<Work>;
    if constexpr (std::is_void_v<Result>) {
      loop_->Offload(lane, std::move(work), Guard(std::move(done)));
    } else {
      auto result = std::make_shared<std::optional<Result>>();
      loop_->Offload(
          lane, [result, work = std::move(work)]() mutable { result->emplace(work()); },
          Guard([result, done = std::move(done)]() mutable { done(*std::move(*result)); }));
    }
  }

 private:
  EventLoop* const loop_;
  // Shared with the callbacks. Only the loop's thread reads and writes the value.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// A timer for one callback at a time. Destruction cancels the callback. Loop thread only.
class Timer {
 public:
  // `loop` must outlive the timer.
  explicit Timer(EventLoop* loop) : loop_(loop) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Cancel(); }

  // Calls `callback` once after `delay`. Cancels a pending callback first. The callback may set the
  // timer again, or destroy it.
  void Set(Time delay, std::function<void()> callback) {
    Cancel();
    id_ = loop_->CallAfter(delay, [this, callback = std::move(callback)] {
      id_ = 0;
      callback();
    });
  }
  // Cancels the pending callback, if there is one.
  void Cancel() {
    if (id_ != 0) loop_->CancelTimer(std::exchange(id_, 0));
  }
  bool pending() const { return id_ != 0; }

 private:
  EventLoop* const loop_;
  EventLoop::TimerId id_ = 0;
};

}  // namespace shoal
