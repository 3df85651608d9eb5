#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace shoal {

void World::After(Time delay, std::function<void()> event) {
  events_.push_back({now_ + delay, random_.Next(), std::move(event)});
  std::push_heap(events_.begin(), events_.end(), Later);
}

bool World::RunNext() {
  if (events_.empty()) return false;
  std::pop_heap(events_.begin(), events_.end(), Later);
  const Event event = std::move(events_.back());
  events_.pop_back();
  now_ = event.at;
  ++events_run_;
  event.run();
  return true;
}

void World::Fail(const std::string& what) {
  if (failure_.has_value()) return;
  failure_ =
      absl::StrFormat("at %.6f s: %s", std::chrono::duration<double>(now_).count() - 1000, what);
  Trace("INVARIANT", *failure_);
}

void World::Trace(const std::string& who, const std::string& what) {
  if (!tracing_) return;
  absl::StrAppendFormat(&trace_, "%11.6f %-12s %s\n",
                        std::chrono::duration<double>(now_).count() - 1000, who, what);
}

}  // namespace shoal
