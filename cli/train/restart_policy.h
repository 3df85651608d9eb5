#pragma once

#include <map>
#include <optional>

#include "common/cluster/cluster_spec.h"
#include "common/rpc/backoff.h"

namespace shoal {

// Decides how often and how soon a task that keeps dying is restarted: a limited number of times,
// with growing pauses. A task that has run for 60 s starts again from zero. Plain state;
// not thread-safe.
class RestartPolicy {
 public:
  // `max_restarts` is per task. 0 means no restarts.
  explicit RestartPolicy(int max_restarts) : max_restarts_(max_restarts) {}

  // Call when a task dies that had run for `ran`. Returns nullopt if it must not be restarted.
  std::optional<Time> PauseBeforeRestart(const TaskId& task, Time ran);
  // Returns the number of restarts since the task last ran for 60 s.
  int restarts(const TaskId& task) const;

 private:
  struct Record {
    int restarts = 0;
    Backoff pauses;
  };
  using Key = std::pair<TaskType, int>;

  const int max_restarts_;
  std::map<Key, Record> records_;
};

}  // namespace shoal
