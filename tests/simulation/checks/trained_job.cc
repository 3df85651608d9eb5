#include "tests/simulation/checks/trained_job.h"

#include "absl/strings/str_cat.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {

void TrainedJob::Replace(const SimulatedJob& job) {
  if (job.workload->run_dir == workload().run_dir) former_end_ = workload().ending.result_step;
  job_ = job;
  rounds_ = job.workload->rounds();
}

const Workload* TrainedJob::JobOf(uint64_t timeline) const {
  const auto found = job_of_.find(timeline);
  return found == job_of_.end() ? nullptr : found->second;
}

absl::Status TrainedJob::CheckBuffer(const std::vector<std::span<const float>>& slots,
                                     uint64_t updates) const {
  if (workload().sums_in != Workload::SumsIn::kDelayed || slots.empty()) return absl::OkStatus();
  const auto buffered = static_cast<float>(updates % workload().momentum_every);
  for (const float value : slots[1]) {
    if (-value >= buffered && -value <= kMaxAddend * buffered) continue;
    return absl::DataLossError(absl::StrCat("has ", -value, " in its buffer, which is no sum of ",
                                            buffered, " differences, after ", updates, " updates"));
  }
  return absl::OkStatus();
}

}  // namespace shoal
