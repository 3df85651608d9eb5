#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace shoal {

// A point where a fixed number of threads wait for one another, repeatedly. Thread-safe.
class Rendezvous {
 public:
  explicit Rendezvous(int threads) : threads_(threads) {}

  // Returns once all threads have called it as often as this one. kCancelled after Abort, also for
  // threads that are already waiting.
  absl::Status Meet();
  // Ends all current and future waits.
  void Abort();
  // The number of times that all threads have met.
  int meetings() const;

 private:
  const int threads_;
  mutable Mutex mutex_;
  CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int meetings_ ABSL_GUARDED_BY(mutex_) = 0;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace shoal
