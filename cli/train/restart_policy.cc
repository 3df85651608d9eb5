#include "cli/train/restart_policy.h"

namespace shoal {

std::optional<Time> RestartPolicy::PauseBeforeRestart(const TaskId& task, Time ran) {
  const uint64_t seed = 31 * static_cast<uint64_t>(task.index) + static_cast<uint64_t>(task.type);
  Record& record =
      records_
          .try_emplace({task.type, task.index},
                       Record{0, Backoff(options_.first_pause, options_.longest_pause, seed)})
          .first->second;
  if (ran >= options_.forgiven_after) {
    record.restarts = 0;
    record.pauses.Reset();
  }
  if (record.restarts >= options_.max_restarts) return std::nullopt;
  ++record.restarts;
  return record.pauses.Next();
}

int RestartPolicy::restarts(const TaskId& task) const {
  const auto record = records_.find({task.type, task.index});
  return record == records_.end() ? 0 : record->second.restarts;
}

}  // namespace shoal
