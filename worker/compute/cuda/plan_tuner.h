#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/plan_cache.h"
#include "worker/compute/cuda/trial.h"

namespace shoal::cuda {

// What there is to choose from for one piece of work. A Plan, which moves, says its choice(), by
// which it can be made again.
template <typename Plan>
struct PlanOffer {
  std::string libraries;  // as PlanKey's
  std::string work;       // likewise
  // The plan of this choice; an error where that is none, or not within the demands.
  std::function<absl::StatusOr<Plan>(const std::string& choice)> make;
  // As many plans as there are, `most` at most and at least one, what is thought best first.
  std::function<absl::StatusOr<std::vector<Plan>>(size_t most)> suggest;
  // kDataLoss: it computes something else, and is not taken. What cannot be measured for another
  // reason may be.
  std::function<absl::StatusOr<Trial>(Plan& plan)> measure;
  // Without a tuner, too, what computes something else is not taken.
  bool checked = false;
};

// The best is nearly always among these; each takes some runs to measure.
constexpr size_t kMeasuredPlans = 24;
// Before the first is measured, so that it does not look worse than the later ones: a GPU that was
// idle has low clocks for as long as some of these take.
constexpr int kWarmUps = 20;

// kUnimplemented: all that the libraries name for the work compute something else.
absl::Status NoneComputes(const std::string& libraries, const std::string& work);

// Chooses the fastest among ways of computing the same on one GPU, once, and keeps what it has
// chosen (plan_cache.h). What is chosen by the clock need not have the same bits in another
// process. Not thread-safe.
class PlanTuner {
 public:
  struct Options {
    std::string cache_path;  // empty: nothing is kept in a file
    std::string gpu;         // as PlanKey's
    std::string demands;     // likewise, of all that is chosen
    // What hinders nothing, for people: of each kind once, as it is of one plan what it is of the
    // next.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit PlanTuner(Options options);

  // The plan of the choice that is kept or, where none is that is any good, the fastest of the
  // first few, whose choice is then kept. Where none can be measured, the first.
  template <typename Plan>
  absl::StatusOr<Plan> Choose(const PlanOffer<Plan>& offer);

 private:
  PlanKey KeyOf(const std::string& libraries, const std::string& work) const {
    return {.libraries = libraries, .gpu = options_.gpu, .work = work, .demands = options_.demands};
  }
  template <typename Plan>
  void WarmUp(const PlanOffer<Plan>& offer, Plan& plan);
  void Keep(const PlanKey& key, const std::string& choice);
  void WarnOfNoMeasure(const absl::Status& why);

  const Options options_;
  PlanCache cache_;
  bool warm_ = false;
  bool warned_of_no_measure_ = false;
};

// By `tuner`; without one, the first that is suggested, which is the same each time: of an offer
// that is `checked` the first that computes what it is to.
template <typename Plan>
absl::StatusOr<Plan> ChoosePlan(PlanTuner* tuner, const PlanOffer<Plan>& offer) {
  if (tuner != nullptr) return tuner->Choose(offer);
  // The others are made only where the first is no good, which is rare.
  for (const size_t most : {size_t{1}, kMeasuredPlans}) {
    SHOAL_ASSIGN_OR_RETURN(std::vector<Plan> plans, offer.suggest(most));
    for (Plan& plan : plans) {
      if (!offer.checked || !absl::IsDataLoss(offer.measure(plan).status())) return std::move(plan);
    }
  }
  return NoneComputes(offer.libraries, offer.work);
}

template <typename Plan>
struct TakenPlan {
  Plan plan;
  absl::Status unmeasured;  // why none could be measured
};

// The fastest, of those that can be measured and agree with most others; the first where none can.
// kUnimplemented where all compute something else.
template <typename Plan>
absl::StatusOr<TakenPlan<Plan>> TakeFastest(const PlanOffer<Plan>& offer, std::vector<Plan> plans) {
  std::vector<Trial> trials;
  std::vector<size_t> tried;
  std::optional<size_t> first;  // of those that may be taken
  absl::Status failed;
  for (size_t i = 0; i < plans.size(); ++i) {
    absl::StatusOr<Trial> trial = offer.measure(plans[i]);
    if (absl::IsDataLoss(trial.status())) continue;
    if (!first.has_value()) first = i;
    if (trial.ok()) {
      trials.push_back(*std::move(trial));
      tried.push_back(i);
    } else {
      failed = trial.status();
    }
  }
  if (!first.has_value()) return NoneComputes(offer.libraries, offer.work);
  if (tried.empty()) return TakenPlan<Plan>{std::move(plans[*first]), failed};
  return TakenPlan<Plan>{std::move(plans[tried[FastestOfThoseThatAgree(trials)]]), {}};
}

template <typename Plan>
void PlanTuner::WarmUp(const PlanOffer<Plan>& offer, Plan& plan) {
  if (std::exchange(warm_, true)) return;
  for (int i = 0; i < kWarmUps && offer.measure(plan).ok(); ++i) continue;
}

template <typename Plan>
absl::StatusOr<Plan> PlanTuner::Choose(const PlanOffer<Plan>& offer) {
  const PlanKey key = KeyOf(offer.libraries, offer.work);
  if (const std::optional<std::string> choice = cache_.Find(key); choice.has_value()) {
    absl::StatusOr<Plan> kept = offer.make(*choice);
    if (kept.ok()) return kept;
  }
  SHOAL_ASSIGN_OR_RETURN(std::vector<Plan> plans, offer.suggest(kMeasuredPlans));
  WarmUp(offer, plans[0]);
  SHOAL_ASSIGN_OR_RETURN(TakenPlan<Plan> taken, TakeFastest(offer, std::move(plans)));
  if (taken.unmeasured.ok()) {
    Keep(key, taken.plan.choice());
  } else {
    WarnOfNoMeasure(taken.unmeasured);
  }
  return std::move(taken.plan);
}

}  // namespace shoal::cuda
