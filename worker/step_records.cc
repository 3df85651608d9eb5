#include "worker/step_records.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace shoal {

absl::Status StepRecords::Open(uint32_t worker) {
  MutexLock lock(&mutex_);
  const std::string path = absl::StrCat(directory_, "/steps-worker-", worker, ".csv");
  file_ = std::ofstream(path, std::ios::app);
  if (file_.is_open()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

void StepRecords::Computing(uint64_t step, const std::vector<uint64_t>& examples) {
  MutexLock lock(&mutex_);
  step_ = step;
  examples_ = examples;
}

void StepRecords::Finished(uint64_t timeline, uint64_t step) {
  MutexLock lock(&mutex_);
  if (step != step_) return;
  file_ << timeline << ',' << step << ',';
  for (size_t i = 0; i < examples_.size(); ++i) file_ << (i == 0 ? "" : " ") << examples_[i];
  file_ << std::endl;
}

}  // namespace shoal
