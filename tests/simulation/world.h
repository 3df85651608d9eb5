#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/rpc/event_loop.h"
#include "tests/simulation/random.h"

namespace shoal {

// Clock and events of one simulation: what happens at the same moment happens in an order that the
// seed decides. Keeps the first violation of an invariant, and the trace when one is wanted. One
// thread.
class World {
 public:
  World(uint64_t seed, bool tracing) : random_(seed), tracing_(tracing) {}

  Time Now() const { return now_; }
  Random& random() { return random_; }
  void After(Time delay, std::function<void()> event);
  // Runs the next event; false when there is none.
  bool RunNext();
  uint64_t events() const { return events_run_; }

  // An invariant does not hold.
  void Fail(const std::string& what);
  const std::optional<std::string>& failure() const { return failure_; }

  bool tracing() const { return tracing_; }
  // A line of the trace; `who` does `what` now.
  void Trace(const std::string& who, const std::string& what);
  const std::string& trace() const { return trace_; }

 private:
  struct Event {
    Time at;
    uint64_t tie;
    std::function<void()> run;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.tie > b.tie;
  }

  // Not 0, which stands for "never" in some places.
  Time now_ = std::chrono::seconds(1000);
  Random random_;
  std::vector<Event> events_;  // a heap, the next one first
  uint64_t events_run_ = 0;
  std::optional<std::string> failure_;
  const bool tracing_;
  std::string trace_;
};

}  // namespace shoal
