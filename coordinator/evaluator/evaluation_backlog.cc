#include "coordinator/evaluator/evaluation_backlog.h"

#include <algorithm>

#include "common/run/run_verdict.h"

namespace shoal {
namespace {

constexpr int kMaxFailures = 3;

}  // namespace

std::vector<StoredCheckpoint> EvaluationBacklog::Add(const StoredCheckpoint& checkpoint) {
  checkpoints_.push_back(checkpoint);
  std::vector<StoredCheckpoint> passed_over;
  while (checkpoints_.size() > max_) {
    passed_over.push_back(checkpoints_.front());
    Remove(passed_over.back().directory);
  }
  return passed_over;
}

std::optional<StoredCheckpoint> EvaluationBacklog::Next(
    const std::function<bool(const StoredCheckpoint&)>& may) const {
  for (const bool of_epoch : {true, false}) {
    const auto found =
        std::find_if(checkpoints_.rbegin(), checkpoints_.rend(), [&](const StoredCheckpoint& each) {
          return IsAtEpochEnd(each.manifest) == of_epoch && may(each);
        });
    if (found != checkpoints_.rend()) return *found;
  }
  return std::nullopt;
}

void EvaluationBacklog::Remove(const std::string& directory) {
  std::erase_if(checkpoints_,
                [&](const StoredCheckpoint& each) { return each.directory == directory; });
  failures_.erase(directory);
}

bool EvaluationBacklog::Failed(const std::string& directory) {
  if (!Has(directory)) return false;
  if (++failures_[directory] < kMaxFailures) return true;
  Remove(directory);
  return false;
}

bool EvaluationBacklog::Has(const std::string& directory) const {
  return std::any_of(checkpoints_.begin(), checkpoints_.end(),
                     [&](const StoredCheckpoint& each) { return each.directory == directory; });
}

}  // namespace shoal
