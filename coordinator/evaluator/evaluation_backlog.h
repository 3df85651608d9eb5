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

// The checkpoints that an evaluator has still to evaluate. Those at an epoch's end come before
// others, as their results are the run's curves, and newer ones before older ones, as they say how
// the training goes: an evaluator that is slower than checkpoints appear evaluates some of them.
// Plain state; not thread-safe.
class EvaluationBacklog {
 public:
  // So many, the newest, are kept in mind: those before them are not on disk any more.
  explicit EvaluationBacklog(size_t most) : most_(most) {}

  // The newest of all. Returns those that are not to be evaluated any more for it.
  std::vector<StoredCheckpoint> Add(const StoredCheckpoint& checkpoint);
  // The next of those that `may` be evaluated now.
  std::optional<StoredCheckpoint> Next(
      const std::function<bool(const StoredCheckpoint&)>& may) const;
  // It is evaluated, or cannot be.
  void Remove(const std::string& directory);
  // Whoever evaluated it is gone, or got no further. False: for the last time, and it is removed;
  // what brings evaluators down is not handed out for ever.
  bool Failed(const std::string& directory);

  bool Has(const std::string& directory) const;
  const std::vector<StoredCheckpoint>& checkpoints() const { return checkpoints_; }

 private:
  const size_t most_;
  std::vector<StoredCheckpoint> checkpoints_;  // oldest first
  std::map<std::string, int> failures_;        // of these, by directory
};

}  // namespace shoal
