#include "worker/session/step_records.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"

namespace shoal {

StepRecords::~StepRecords() {
  MutexLock lock(&mutex_);
  Write(unwritten_);
}

void StepRecords::SetWorker(uint32_t worker) {
  MutexLock lock(&mutex_);
  worker_ = worker;
}

void StepRecords::Computing(uint64_t step, const std::vector<uint64_t>& examples) {
  std::vector<Line> lines;
  {
    MutexLock lock(&mutex_);
    step_ = step;
    examples_ = examples;
    lines.swap(unwritten_);
  }
  Write(lines);
}

void StepRecords::Finished(uint64_t timeline, uint64_t step) {
  MutexLock lock(&mutex_);
  if (step != step_) return;
  unwritten_.push_back(
      {worker_, absl::StrCat(timeline, ",", step, ",", absl::StrJoin(examples_, " "), "\n")});
}

void StepRecords::Write(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    const std::string path = absl::StrCat(directory_, "/steps-worker-", line.worker, ".csv");
    if (path != path_) {
      path_ = path;
      file_ = std::ofstream(path, std::ios::app);
      if (!file_.is_open())
        LogError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
    }
    file_ << line.text << std::flush;
  }
}

}  // namespace shoal
