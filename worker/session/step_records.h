#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace shoal {

// Records on disk the steps that a worker has trained on: DIR/steps-worker-INDEX.csv, one line for
// each step that every ps has acknowledged: "timeline,step,example example ...". The records show
// that every example of an epoch was used exactly once.
//
// The computing thread writes a step's line when the next step begins, and at the end. So a killed
// worker loses at most one line, and its loop never waits for a file. Each method says on which
// threads it may be called.
class StepRecords {
 public:
  explicit StepRecords(std::string directory) : directory_(std::move(directory)) {}
  // Writes the remaining lines. Requires that no other call is in progress.
  ~StepRecords();
  StepRecords(const StepRecords&) = delete;
  StepRecords& operator=(const StepRecords&) = delete;

  // Any thread: sets the worker's index, which names its file. May be called again for a new index.
  void SetWorker(uint32_t worker);
  // The computing thread: sets the examples of the current step. Writes the line of the step
  // before; logs the reason if the file cannot be opened.
  void Computing(uint64_t step, const std::vector<uint64_t>& examples);
  // Any thread: reports that every ps has applied the step. Does not wait.
  void Finished(uint64_t timeline, uint64_t step);

 private:
  struct Line {
    uint32_t worker;
    std::string text;
  };
  void Write(const std::vector<Line>& lines);

  const std::string directory_;
  // Used only by the computing thread.
  std::string path_;
  std::ofstream file_;

  Mutex mutex_;  // held only for moments
  uint32_t worker_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> examples_ ABSL_GUARDED_BY(mutex_);  // of step_
  std::vector<Line> unwritten_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
