#include "common/rpc/timer_queue.h"

namespace shoal {

EventLoop::TimerId TimerQueue::Add(Time due, std::function<void()> callback) {
  const EventLoop::TimerId id = ++last_id_;
  timers_.emplace(Key(due, id), std::move(callback));
  due_.emplace(id, due);
  return id;
}

void TimerQueue::Cancel(EventLoop::TimerId timer) {
  const auto it = due_.find(timer);
  if (it == due_.end()) return;
  // Unlink the timer first. Objects that the callback owns may set or cancel timers when they are
  // destroyed.
  auto node = timers_.extract(Key(it->second, timer));
  due_.erase(it);
}

std::optional<Time> TimerQueue::next_due() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first.first;
}

std::function<void()> TimerQueue::TakeDue(Time now) {
  if (timers_.empty() || timers_.begin()->first.first > now) return nullptr;
  auto node = timers_.extract(timers_.begin());
  due_.erase(node.key().second);
  return std::move(node.mapped());
}

void TimerQueue::Clear() {
  due_.clear();
  const auto timers = std::exchange(timers_, {});
}

}  // namespace shoal
