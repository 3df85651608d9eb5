#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/rpc/event_loop.h"

namespace shoal {

// The life of an object that waits for callbacks: after its end none of them runs. A member, last
// of all, so that it ends first. Loop thread only, but for Guard, which any thread may call while
// the scope lives.
class Scope {
 public:
  // `loop` outlives the scope.
  explicit Scope(EventLoop* loop) : loop_(loop) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { *alive_ = false; }

  // Returns `callback`, which does nothing once the scope has ended. It may be called on the loop's
  // thread only, but be copied and destroyed on any.
  template <typename Callback>
  auto Guard(Callback callback) const {
    return [alive = alive_, callback = std::move(callback)](auto&&... arguments) mutable {
      if (*alive) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // Runs `work` off the loop, in that lane, and then `done` with its result on the loop, unless the
  // scope has ended meanwhile. `work` runs in any case: it must not use what ends with the scope.
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
  // Read and written on the loop's thread only; callbacks share it.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// One callback to come, which the timer's end cancels. Loop thread only.
class Timer {
 public:
  // `loop` outlives the timer.
  explicit Timer(EventLoop* loop) : loop_(loop) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { Cancel(); }

  // Calls `callback` once after `delay`, in place of what was to come. The callback may set the
  // timer again, or end it.
  void Set(Time delay, std::function<void()> callback) {
    Cancel();
    id_ = loop_->CallAfter(delay, [this, callback = std::move(callback)] {
      id_ = 0;
      callback();
    });
  }
  // No effect when nothing is to come.
  void Cancel() {
    if (id_ != 0) loop_->CancelTimer(std::exchange(id_, 0));
  }
  bool pending() const { return id_ != 0; }

 private:
  EventLoop* const loop_;
  EventLoop::TimerId id_ = 0;
};

}  // namespace shoal
