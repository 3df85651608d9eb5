#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace shoal {

// What a worker has trained on, step by step, on disk: DIR/steps-worker-INDEX.csv, a line for each
// step that every ps has acknowledged: "timeline,step,example example ...". Shows that every
// example of an epoch was used exactly once. Thread-safe.
class StepRecords {
 public:
  explicit StepRecords(std::string directory) : directory_(std::move(directory)) {}

  // Opens the worker's file for appending; again when the worker has another index.
  absl::Status Open(uint32_t worker);
  // The examples of a step that is being computed now.
  void Computing(uint64_t step, const std::vector<uint64_t>& examples);
  // The step is applied everywhere: its line is written.
  void Finished(uint64_t timeline, uint64_t step);

 private:
  const std::string directory_;
  Mutex mutex_;
  std::ofstream file_ ABSL_GUARDED_BY(mutex_);
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> examples_ ABSL_GUARDED_BY(mutex_);  // of step_
};

}  // namespace shoal
