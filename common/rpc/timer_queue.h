#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "common/rpc/event_loop.h"

namespace shoal {

// The timers of one loop, by due time; those of the same time in the order in which they were set.
// Not thread-safe.
class TimerQueue {
 public:
  EventLoop::TimerId Add(Time due, std::function<void()> callback);
  // No effect when there is no such timer any more.
  void Cancel(EventLoop::TimerId timer);

  // When the first timer is due; nothing without timers.
  std::optional<Time> next_due() const;
  // Takes the first timer that is due by `now`; null when there is none.
  std::function<void()> TakeDue(Time now);

  void Clear();

 private:
  // Ids rise, so that they order timers of the same time.
  using Key = std::pair<Time, EventLoop::TimerId>;
  std::map<Key, std::function<void()>> timers_;
  std::unordered_map<EventLoop::TimerId, Time> due_;
  EventLoop::TimerId last_id_ = 0;
};

}  // namespace shoal
