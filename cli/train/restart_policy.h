#pragma once

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
  // `max_restarts`: of one task; 0: nothing is started again.
  explicit RestartPolicy(int max_restarts) : max_restarts_(max_restarts) {}

  // A task died that had run for `ran`. Absent: it is not to be started again.
  std::optional<Time> PauseBeforeRestart(const TaskId& task, Time ran);
  // How often the task was started again since it was forgiven.
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
