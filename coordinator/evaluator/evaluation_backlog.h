#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_store.h"

namespace shoal {

// The checkpoints that are not evaluated yet. Checkpoints at an epoch's end come first, because
// their results form the run's curves. Then newer ones come before older ones, because they show
// the current state of the training. If checkpoints appear faster than the evaluator works, it
// evaluates only some of them. Plain state; not thread-safe.
class EvaluationBacklog {
 public:
  // Remembers at most `max` checkpoints, the newest. Older ones are no longer on disk.
  explicit EvaluationBacklog(size_t max) : max_(max) {}

  // Adds the newest checkpoint. Returns those that it pushes out of the backlog.
  std::vector<StoredCheckpoint> Add(const StoredCheckpoint& checkpoint);
  // Returns the next checkpoint for which `may` is true.
  std::optional<StoredCheckpoint> Next(
      const std::function<bool(const StoredCheckpoint&)>& may) const;
  // Removes a checkpoint: it is evaluated, or cannot be.
  void Remove(const std::string& directory);
  // The evaluator of this checkpoint is gone, or got no further. Returns false after the third
  // time and removes the checkpoint, so that it does not bring evaluators down without end.
  bool Failed(const std::string& directory);

  bool Has(const std::string& directory) const;
  const std::vector<StoredCheckpoint>& checkpoints() const { return checkpoints_; }

 private:
  const size_t max_;
  std::vector<StoredCheckpoint> checkpoints_;  // oldest first
  std::map<std::string, int> failures_;        // of these checkpoints, by directory
};

}  // namespace shoal
