#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace shoal {

// What a worker has trained on, step by step, on disk: DIR/steps-worker-INDEX.csv, a line for each
// step that every ps has acknowledged: "timeline,step,example example ...". Shows that every
// example of an epoch was used exactly once.
//
// The line of a step is written when the next one begins to be computed, on the thread that
// computes, and at the end: a worker that is killed takes at most one line with it, and its loop
// never waits for a file. Each method says on which thread it may be called.
class StepRecords {
 public:
  explicit StepRecords(std::string directory) : directory_(std::move(directory)) {}
  // When nobody calls any more: writes what is left.
  ~StepRecords();
  StepRecords(const StepRecords&) = delete;
  StepRecords& operator=(const StepRecords&) = delete;

  // Any thread: the worker's index, which names its file. Again when it has another.
  void SetWorker(uint32_t worker);
  // The computing thread: the examples of a step that is computed now. Writes the step before, and
  // logs why where its file cannot be opened.
  void Computing(uint64_t step, const std::vector<uint64_t>& examples);
  // Any thread: the step is applied everywhere. Does not wait.
  void Finished(uint64_t timeline, uint64_t step);

 private:
  struct Line {
    uint32_t worker;
    std::string text;
  };
  void Write(const std::vector<Line>& lines);

  const std::string directory_;
  // Of the computing thread.
  std::string path_;
  std::ofstream file_;

  Mutex mutex_;  // held for moments
  uint32_t worker_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> examples_ ABSL_GUARDED_BY(mutex_);  // of step_
  std::vector<Line> unwritten_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
