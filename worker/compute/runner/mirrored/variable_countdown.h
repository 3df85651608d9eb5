#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace shoal {

// Counts down the replicas that still have to finish each variable of a step. Replicas report from
// their threads. One other thread takes the variables that all replicas have finished, while the
// replicas compute on.
class VariableCountdown {
 public:
  VariableCountdown(size_t replicas, size_t variables)
      : running_(replicas), missing_(variables, replicas) {}

  // Reports that a replica is done with the variable.
  void Done(int variable) {
    {
      MutexLock lock(&mutex_);
      if (--missing_[variable] > 0) return;
      complete_.push_back(variable);
    }
    changed_.NotifyOne();
  }
  // Reports that a replica has ended, whether or not it has finished all variables.
  void Ended() {
    {
      MutexLock lock(&mutex_);
      --running_;
    }
    changed_.NotifyOne();
  }

  // Waits for a variable that all replicas have finished, and returns each once. Returns nothing
  // when all replicas have ended and no such variable is left.
  std::optional<int> Next() {
    MutexLock lock(&mutex_);
    while (complete_.empty() && running_ > 0) changed_.Wait(&mutex_);
    if (complete_.empty()) return std::nullopt;
    const int variable = complete_.front();
    complete_.pop_front();
    return variable;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  size_t running_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> missing_ ABSL_GUARDED_BY(mutex_);  // replicas, by variable
  std::deque<int> complete_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
