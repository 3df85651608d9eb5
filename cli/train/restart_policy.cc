#include "cli/train/restart_policy.h"

#include <chrono>

namespace shoal {
namespace {

constexpr Time kFirstPause = std::chrono::milliseconds(100);
constexpr Time kLongestPause = std::chrono::seconds(10);
// A task that ran for this long starts again from zero restarts.
constexpr Time kResetAfter = std::chrono::seconds(60);

}  // namespace

std::optional<Time> RestartPolicy::PauseBeforeRestart(const TaskId& task, Time ran) {
  const uint64_t seed = 31 * static_cast<uint64_t>(task.index) + static_cast<uint64_t>(task.type);
  Record& record = records_
                       .try_emplace({task.type, task.index},
                                    Record{0, Backoff(kFirstPause, kLongestPause, seed)})
                       .first->second;
  if (ran >= kResetAfter) {
    record.restarts = 0;
    record.pauses.Reset();
  }
  if (record.restarts >= max_restarts_) return std::nullopt;
  ++record.restarts;
  return record.pauses.Next();
}

int RestartPolicy::restarts(const TaskId& task) const {
  const auto record = records_.find({task.type, task.index});
  return record == records_.end() ? 0 : record->second.restarts;
}

}  // namespace shoal
