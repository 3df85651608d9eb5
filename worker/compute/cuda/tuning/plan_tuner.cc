#include "worker/compute/cuda/tuning/plan_tuner.h"

#include "absl/strings/str_cat.h"

namespace shoal::cuda {

absl::Status NoneComputes(const std::string& libraries, const std::string& work) {
  return absl::UnimplementedError(
      absl::StrCat("all that ", libraries, " names for it compute something else: ", work));
}

PlanTuner::PlanTuner(Options options) : options_(std::move(options)), cache_(options_.cache_path) {
  if (!cache_.warning().empty()) options_.on_warning(cache_.warning());
}

void PlanTuner::Keep(const PlanKey& key, const std::string& choice) {
  const absl::Status kept = cache_.Keep(key, choice);
  if (kept.ok()) return;
  options_.on_warning(absl::StrCat(
      "what was measured to be the fastest is not kept, and each start measures anew: ",
      std::string(kept.message()), "; let XDG_CACHE_HOME name a directory that can be written to"));
}

void PlanTuner::WarnOfNoMeasure(const absl::Status& why) {
  if (std::exchange(warned_of_no_measure_, true)) return;
  options_.on_warning(
      absl::StrCat("what is the fastest cannot be measured, and the first is taken: ",
                   std::string(why.message())));
}

}  // namespace shoal::cuda
