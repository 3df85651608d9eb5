#include "common/job/job_rounds.h"

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

constexpr char kField[] = "$.strategy.gradients_per_update";

}  // namespace

absl::Status ResolveRounds(uint64_t listed_workers, Job* job) {
  Job::Strategy& strategy = job->strategy;
  if (!strategy.sync() || strategy.gradients_per_update > 0) return absl::OkStatus();
  if (listed_workers == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField,
                     " is missing, and the cluster spec lists no workers, whose number it would "
                     "be; give it a number"));
  }
  if (listed_workers > strategy.window_steps) {
    return absl::InvalidArgumentError(
        absl::StrCat(kField, " is missing, and the cluster spec lists ", listed_workers,
                     " workers; must be at most $.strategy.window_steps, ", strategy.window_steps,
                     ", as a round lies in the window. Raise that, or give the field"));
  }
  strategy.gradients_per_update = listed_workers;
  return absl::OkStatus();
}

absl::Status CheckRounds(const Job& job, uint64_t steps_per_epoch) {
  const uint64_t gradients = job.strategy.gradients_per_update;
  if (!job.strategy.sync() || gradients <= steps_per_epoch) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kField, " is ", gradients, ", but an epoch has only ", steps_per_epoch,
                   " steps, of ", job.batch_size, job.batch_size == 1 ? " example" : " examples",
                   " each: an update would never have its gradients. Give at most ",
                   steps_per_epoch, ", or a smaller $.batch_size"));
}

}  // namespace shoal
