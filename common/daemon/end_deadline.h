#pragma once

#include <chrono>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace shoal {

// Ends the process with `exit_code` if this object lives longer than `patience`. This happens if a
// daemon's end waits for work that cannot be interrupted: a step of a large model, or a disk that
// does not answer. Logs the work that still runs.
class EndDeadline {
 public:
  EndDeadline(std::chrono::milliseconds patience, int exit_code);
  ~EndDeadline();
  EndDeadline(const EndDeadline&) = delete;
  EndDeadline& operator=(const EndDeadline&) = delete;

 private:
  void Run();

  const std::chrono::milliseconds patience_;
  const int exit_code_;
  Mutex mutex_;
  CondVar changed_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, so that it starts after all other members exist
};

}  // namespace shoal
