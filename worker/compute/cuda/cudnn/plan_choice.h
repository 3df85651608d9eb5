#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/cudnn/plan_cache.h"

namespace shoal::cuda {

// What there is to choose from for one graph. A Plan, which moves, says its config().
template <typename Plan>
struct PlanOffer {
  // The plan with this config; an error where that is none, or not within the demands.
  std::function<absl::StatusOr<Plan>(const EngineConfig& config)> make;
  // As many plans as there are, `most` at most and at least one, what is thought best first.
  std::function<absl::StatusOr<std::vector<Plan>>(size_t most)> suggest;
  // How long a plan takes, in any unit. Empty: the first that is suggested is taken.
  std::function<absl::StatusOr<double>(Plan& plan)> measure;
};

// The best is nearly always among these; each takes some runs to measure.
constexpr size_t kMeasuredPlans = 10;

// The index of the fastest, of those that can be measured; the last error where none can.
template <typename Plan>
absl::StatusOr<size_t> FindFastest(const PlanOffer<Plan>& offer, std::vector<Plan>& plans) {
  std::optional<double> least;
  size_t fastest = 0;
  absl::Status failed;
  for (size_t i = 0; i < plans.size(); ++i) {
    const absl::StatusOr<double> time = offer.measure(plans[i]);
    if (!time.ok()) {
      failed = time.status();
    } else if (!least.has_value() || *time < *least) {
      least = *time;
      fastest = i;
    }
  }
  if (!least.has_value()) return failed;
  return fastest;
}

// The plan that `cache` names for `key` or, where it names none that is any good, the fastest of
// the first few, which is kept there. What hinders nothing is said to `on_warning`.
template <typename Plan>
absl::StatusOr<Plan> ChoosePlan(const PlanOffer<Plan>& offer, const PlanKey& key, PlanCache& cache,
                                const std::function<void(const std::string&)>& on_warning) {
  const bool measured = offer.measure != nullptr;
  if (const auto config = cache.Find(key); measured && config.has_value()) {
    absl::StatusOr<Plan> kept = offer.make(*config);
    if (kept.ok()) return kept;
  }
  SHOAL_ASSIGN_OR_RETURN(std::vector<Plan> plans, offer.suggest(measured ? kMeasuredPlans : 1));
  if (!measured) return std::move(plans[0]);
  const absl::StatusOr<size_t> fastest = FindFastest(offer, plans);
  if (!fastest.ok()) {
    on_warning(absl::StrCat("cuDNN's engines cannot be measured, and the first is taken: ",
                            std::string(fastest.status().message())));
    return std::move(plans[0]);
  }
  if (const absl::Status kept = cache.Keep(key, plans[*fastest].config()); !kept.ok()) {
    on_warning(
        absl::StrCat("the choice of cuDNN's engines is not kept, and each start measures anew: ",
                     std::string(kept.message()),
                     "; let XDG_CACHE_HOME name a directory that can be written to"));
  }
  return std::move(plans[*fastest]);
}

}  // namespace shoal::cuda
