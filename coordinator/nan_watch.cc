#include "coordinator/nan_watch.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {

NanWatch::NanWatch(Options options) : options_(std::move(options)) {}

// Logs it once, because every later step will have the same problem.
std::optional<std::string> NanWatch::OnLoss(uint64_t step, double loss_sum, int worker) {
  if (std::isfinite(loss_sum)) {
    steps_ = 0;
    return std::nullopt;
  }
  if (!std::exchange(warned_, true)) {
    LogWarning(absl::StrCat("the loss of step ", step, ", computed by worker ", worker,
                            ", is not a finite number. The variables rarely recover from this. ",
                            Advice()));
  }
  const uint64_t limit = options_.stop_after_steps;
  if (++steps_ < limit || limit == 0) return std::nullopt;
  return absl::StrCat("the losses of ", steps_, " steps in a row, up to step ", step,
                      ", were not finite numbers ($.stop_after_nan_steps). ", Advice());
}

// The advice depends on the cause. With bad data the run can continue. Another learning rate makes
// another job, and a run directory that has a checkpoint does not accept another job.
std::string NanWatch::Advice() const {
  const std::optional<StoredCheckpoint>& finite = options_.checkpointer->last_finite();
  const std::string where = " with --run_dir=" + options_.run_dir;
  if (!options_.checkpointer->newest().has_value()) {
    return absl::StrCat("If the data contain NaN, correct them and start again", where,
                        ", which has no checkpoint yet: training begins at step 0. If the learning "
                        "rate is too high, lower it and start with another --run_dir");
  }
  if (!finite.has_value()) {
    return absl::StrCat(
        "Lower the learning rate, or correct the data if they contain NaN, and start with another "
        "--run_dir: each checkpoint in ",
        options_.run_dir, " has values that are not finite");
  }
  return absl::StrCat("If the data contain NaN, correct them and start again", where,
                      ", which continues from ", finite->directory, " (step ",
                      finite->manifest.cut_step,
                      "), the newest checkpoint whose values are all finite. If the learning rate "
                      "is too high, lower it and start with another --run_dir");
}

}  // namespace shoal
