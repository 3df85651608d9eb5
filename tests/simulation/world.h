#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/rpc/event_loop.h"
#include "tests/simulation/random.h"

namespace shoal {

// The clock and the events of one simulation. The seed decides the order of simultaneous events.
// Keeps the first violation of an invariant, and the trace if requested. Single-threaded.
class World {
 public:
  World(uint64_t seed, bool tracing) : random_(seed), tracing_(tracing) {}

  Time Now() const { return now_; }
  Random& random() { return random_; }
  void After(Time delay, std::function<void()> event);
  // Runs the next event. Returns false if there is none.
  bool RunNext();
  uint64_t events() const { return events_run_; }

  // Reports a violated invariant.
  void Fail(const std::string& what);
  const std::optional<std::string>& failure() const { return failure_; }

  bool tracing() const { return tracing_; }
  // Adds a line to the trace: `who` does `what` now.
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

  // Not 0, because some code uses 0 for "never".
  Time now_ = std::chrono::seconds(1000);
  Random random_;
  std::vector<Event> events_;  // a heap, the next one first
  uint64_t events_run_ = 0;
  std::optional<std::string> failure_;
  const bool tracing_;
  std::string trace_;
};

}  // namespace shoal
