#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/tuning/algorithm_cache.h"
#include "worker/compute/cuda/tuning/algorithm_trial.h"

namespace shoal::cuda {

// The alternatives for one piece of work. A Plan is movable and has a choice(), from which it can
// be made again.
template <typename Plan>
struct AlgorithmOffer {
  std::string libraries;  // as in AlgorithmKey
  std::string work;       // as in AlgorithmKey
  // Makes the plan of this choice; an error if the choice is invalid or breaks the demands.
  std::function<absl::StatusOr<Plan>(const std::string& choice)> make;
  // Returns all plans but at most `max`, and at least one; the presumably best comes first.
  std::function<absl::StatusOr<std::vector<Plan>>(size_t max)> suggest;
  // Measures a plan. kDataLoss: its results are wrong, and it must not be used. A plan that fails
  // with another error may be used.
  std::function<absl::StatusOr<AlgorithmTrial>(Plan& plan)> measure;
  // Rejects plans with wrong results even without a tuner.
  bool checked = false;
};

// The best plan is nearly always among these; measuring each takes a few runs.
constexpr size_t kMeasuredAlgorithms = 24;
// Runs before the first measurement, so that the first plan gets no disadvantage. The clocks of an
// idle GPU stay low for the duration of some of these runs.
constexpr int kWarmUps = 20;

// kUnimplemented: all of the libraries' plans for the work give wrong results.
absl::Status NoCorrectAlgorithmError(const std::string& libraries, const std::string& work);

// Chooses the fastest plan for each computation on one GPU, once, and keeps the choice
// (algorithm_cache.h). A choice depends on timing, so the results may have other bits in another
// process. Not thread-safe.
class AlgorithmTuner {
 public:
  struct Options {
    std::string cache_path;  // empty: no file
    std::string gpu;         // as in AlgorithmKey
    std::string demands;     // as in AlgorithmKey; for all choices
    // Gets a message for people about a problem that stops nothing. Once per kind, because it
    // repeats for every plan.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit AlgorithmTuner(Options options);

  // Returns the plan of the kept choice. If there is none that works, measures the first few,
  // returns the fastest and keeps its choice. If none can be measured, returns the first.
  template <typename Plan>
  absl::StatusOr<Plan> Choose(const AlgorithmOffer<Plan>& offer);

 private:
  AlgorithmKey KeyOf(const std::string& libraries, const std::string& work) const {
    return {.libraries = libraries, .gpu = options_.gpu, .work = work, .demands = options_.demands};
  }
  template <typename Plan>
  void WarmUp(const AlgorithmOffer<Plan>& offer, Plan& plan);
  void Keep(const AlgorithmKey& key, const std::string& choice);
  void WarnUnmeasured(const absl::Status& why);

  const Options options_;
  AlgorithmCache cache_;
  bool warm_ = false;
  bool warned_unmeasured_ = false;
};

// Chooses by `tuner`. Without one, returns the first suggestion, which is always the same; for a
// `checked` offer, the first with correct results.
template <typename Plan>
absl::StatusOr<Plan> ChooseAlgorithm(AlgorithmTuner* tuner, const AlgorithmOffer<Plan>& offer) {
  if (tuner != nullptr) return tuner->Choose(offer);
  // Make the other plans only in the rare case that the first is wrong.
  for (const size_t max : {size_t{1}, kMeasuredAlgorithms}) {
    SHOAL_ASSIGN_OR_RETURN(std::vector<Plan> plans, offer.suggest(max));
    for (Plan& plan : plans) {
      if (!offer.checked || !absl::IsDataLoss(offer.measure(plan).status())) return std::move(plan);
    }
  }
  return NoCorrectAlgorithmError(offer.libraries, offer.work);
}

template <typename Plan>
struct TakenAlgorithm {
  Plan plan;
  absl::Status unmeasured;  // the reason why none could be measured
};

// Returns the fastest plan among those that can be measured and agree with most others; the first
// if none can be measured. kUnimplemented if all give wrong results.
template <typename Plan>
absl::StatusOr<TakenAlgorithm<Plan>> TakeFastest(const AlgorithmOffer<Plan>& offer,
                                                 std::vector<Plan> plans) {
  std::vector<AlgorithmTrial> trials;
  std::vector<size_t> tried;
  std::optional<size_t> first;  // of the usable plans
  absl::Status failed;
  for (size_t i = 0; i < plans.size(); ++i) {
    absl::StatusOr<AlgorithmTrial> trial = offer.measure(plans[i]);
    if (absl::IsDataLoss(trial.status())) continue;
    if (!first.has_value()) first = i;
    if (trial.ok()) {
      trials.push_back(*std::move(trial));
      tried.push_back(i);
    } else {
      failed = trial.status();
    }
  }
  if (!first.has_value()) return NoCorrectAlgorithmError(offer.libraries, offer.work);
  if (tried.empty()) return TakenAlgorithm<Plan>{std::move(plans[*first]), failed};
  return TakenAlgorithm<Plan>{std::move(plans[tried[FastestAgreeing(trials)]]), {}};
}

template <typename Plan>
void AlgorithmTuner::WarmUp(const AlgorithmOffer<Plan>& offer, Plan& plan) {
  if (std::exchange(warm_, true)) return;
  for (int i = 0; i < kWarmUps && offer.measure(plan).ok(); ++i) continue;
}

template <typename Plan>
absl::StatusOr<Plan> AlgorithmTuner::Choose(const AlgorithmOffer<Plan>& offer) {
  const AlgorithmKey key = KeyOf(offer.libraries, offer.work);
  if (const std::optional<std::string> choice = cache_.Find(key); choice.has_value()) {
    absl::StatusOr<Plan> kept = offer.make(*choice);
    if (kept.ok()) return kept;
  }
  SHOAL_ASSIGN_OR_RETURN(std::vector<Plan> plans, offer.suggest(kMeasuredAlgorithms));
  WarmUp(offer, plans[0]);
  SHOAL_ASSIGN_OR_RETURN(TakenAlgorithm<Plan> taken, TakeFastest(offer, std::move(plans)));
  if (taken.unmeasured.ok()) {
    Keep(key, taken.plan.choice());
  } else {
    WarnUnmeasured(taken.unmeasured);
  }
  return std::move(taken.plan);
}

}  // namespace shoal::cuda
