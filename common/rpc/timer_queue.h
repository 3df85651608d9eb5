#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "common/rpc/event_loop.h"

namespace shoal {

// The timers of one loop, by due time. Timers with the same time keep the order of Add(). Not
// thread-safe.
class TimerQueue {
 public:
  EventLoop::TimerId Add(Time due, std::function<void()> callback);
  // Ignores a timer that is no longer in the queue.
  void Cancel(EventLoop::TimerId timer);

  // The due time of the first timer; empty without timers.
  std::optional<Time> next_due() const;
  // Removes the first timer that is due by `now` and returns its callback; null if there is none.
  std::function<void()> TakeDue(Time now);

  void Clear();

 private:
  // Ids grow, so they order timers with the same time.
  using Key = std::pair<Time, EventLoop::TimerId>;
  std::map<Key, std::function<void()>> timers_;
  std::unordered_map<EventLoop::TimerId, Time> due_;
  EventLoop::TimerId last_id_ = 0;
};

}  // namespace shoal
