#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "common/rpc/event_loop.h"
#include "common/rpc/timer_queue.h"

namespace shoal {

// A loop whose clock the test moves. Nothing runs by itself: RunUntilIdle and Advance run the due
// callbacks on the caller's thread.
class FakeLoop : public EventLoop {
 public:
  Time Now() const override {
    ++clock_readings_;
    return now_;
  }
  // Returns how often the clock was read.
  uint64_t clock_readings() const { return clock_readings_; }
  TimerId CallAfter(Time delay, std::function<void()> callback) override {
    return timers_.Add(now_ + delay, std::move(callback));
  }
  void CancelTimer(TimerId timer) override { timers_.Cancel(timer); }
  void Post(std::function<void()> callback) override { posted_.push_back(std::move(callback)); }
  void Offload(Lane lane, std::function<void()> work, std::function<void()> done) override {
    (lane == Lane::kFiles ? offloaded_ : brief_).emplace_back(std::move(work), std::move(done));
  }
  void Stop() override { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // Runs all posted, due and offloaded work, and the work that follows from it, without moving the
  // clock.
  void RunUntilIdle() {
    do {
      RunPosted();
    } while ((!hold_brief_ && RunFirstOf(brief_)) || (!hold_offloads_ && RunFirstOf(offloaded_)));
  }
  // The same, except offloaded work.
  void RunPosted() {
    for (;;) {
      std::function<void()> next;
      if (!posted_.empty()) {
        next = std::move(posted_.front());
        posted_.pop_front();
      } else {
        next = timers_.TakeDue(now_);
      }
      if (next == nullptr) return;
      next();
    }
  }
  // Moves the clock and runs each timer at its time.
  void Advance(Time time) { AdvanceTo(now_ + time); }
  void AdvanceTo(Time until) {
    RunUntilIdle();
    while (timers_.next_due().has_value() && *timers_.next_due() <= until) {
      now_ = *timers_.next_due();
      RunUntilIdle();
    }
    now_ = until;
  }

  // While held, offloaded work waits: RunUntilIdle does not run it.
  void set_hold_offloads(bool hold) { hold_offloads_ = hold; }
  // The same for the other lanes.
  void set_hold_brief(bool hold) { hold_brief_ = hold; }
  // Run the first offloaded piece, even while held, and the callbacks posted before it and by it.
  // Return false if there is none.
  bool RunOneOffloaded() { return RunFirstOf(offloaded_); }
  bool RunOneBrief() { return RunFirstOf(brief_); }

 private:
  using Offloaded = std::deque<std::pair<std::function<void()>, std::function<void()>>>;

  bool RunFirstOf(Offloaded& queue) {
    RunPosted();
    if (queue.empty()) return false;
    const auto [work, done] = std::move(queue.front());
    queue.pop_front();
    work();
    done();
    RunPosted();
    return true;
  }

  // Not 0, because some code uses 0 for "never".
  Time now_ = std::chrono::seconds(1000);
  mutable uint64_t clock_readings_ = 0;
  TimerQueue timers_;
  std::deque<std::function<void()>> posted_;
  Offloaded offloaded_;
  Offloaded brief_;
  bool hold_offloads_ = false;
  bool hold_brief_ = false;
  bool stopped_ = false;
};

}  // namespace shoal
