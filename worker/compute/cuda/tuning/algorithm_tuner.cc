#include "worker/compute/cuda/tuning/algorithm_tuner.h"

#include "absl/strings/str_cat.h"

namespace shoal::cuda {

absl::Status NoCorrectAlgorithmError(const std::string& libraries, const std::string& work) {
  return absl::UnimplementedError(
      absl::StrCat("every plan of ", libraries, " computes something else: ", work));
}

AlgorithmTuner::AlgorithmTuner(Options options)
    : options_(std::move(options)), cache_(options_.cache_path) {
  if (!cache_.warning().empty()) options_.on_warning(cache_.warning());
}

void AlgorithmTuner::Keep(const AlgorithmKey& key, const std::string& choice) {
  const absl::Status kept = cache_.Keep(key, choice);
  if (kept.ok()) return;
  options_.on_warning(
      absl::StrCat("cannot keep which plan is the fastest, so each start measures again: ",
                   std::string(kept.message()), "; set XDG_CACHE_HOME to a writable directory"));
}

void AlgorithmTuner::WarnUnmeasured(const absl::Status& why) {
  if (std::exchange(warned_unmeasured_, true)) return;
  options_.on_warning(
      absl::StrCat("cannot measure which plan is the fastest, so the first is taken: ",
                   std::string(why.message())));
}

}  // namespace shoal::cuda
