#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "common/cluster/cluster_spec.h"
#include "common/rpc/backoff.h"

namespace shoal {

// How often and how soon a task that keeps dying is started again: after pauses that grow, a
// limited number of times. A task that has run well for a while starts from nothing. Plain state;
// not thread-safe.
class RestartPolicy {
 public:
  struct Options {
    int max_restarts = 10;  // of one task; 0: nothing is started again
    Time first_pause = std::chrono::milliseconds(100);
    Time longest_pause = std::chrono::seconds(10);
    // Who ran for this long is forgiven what was before.
    Time forgiven_after = std::chrono::seconds(60);
  };
  explicit RestartPolicy(const Options& options) : options_(options) {}

  // A task died that had run for `ran`. Absent: it is not to be started again.
  std::optional<Time> PauseBeforeRestart(const TaskId& task, Time ran);
  // How often the task was started again since it was forgiven.
  int restarts(const TaskId& task) const;
  const Options& options() const { return options_; }

 private:
  struct Record {
    int restarts = 0;
    Backoff pauses;
  };
  using Key = std::pair<TaskType, int>;

  const Options options_;
  std::map<Key, Record> records_;
};

}  // namespace shoal
