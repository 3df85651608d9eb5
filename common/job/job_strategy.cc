#include "common/job/job_strategy.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr char kGradients[] = "$.strategy.gradients_per_update";
constexpr char kOuter[] = "$.strategy.outer_optimizer";

// The momentum covers two differences per worker. In arXiv 2401.09135 this is as good as more, and
// one per worker is too few.
std::string OuterOptimizerFor(uint64_t workers) {
  return absl::StrFormat(R"({"class_name": "DelayedNesterov", "config": {"momentum_every": %d}})",
                         2 * workers);
}

// The number of workers, or 1 if the strategy is not resolved.
uint64_t WorkersOf(const Job::Strategy& strategy) {
  return std::max<uint64_t>(strategy.workers, 1);
}

// Asynchrony acts like additional momentum. With an original momentum of 0.9, published runs do
// best with 0.9 at up to 2 workers, 0.7 at 4 and 0.5 at 8. A line in the logarithm of the worker
// count fits these. The result stays above 0, because some optimizers need momentum.
double MomentumShare(uint64_t workers) {
  const double doublings = std::max(std::log2(static_cast<double>(workers)) - 1, 0.0);
  return std::max(1 - doublings * 2 / 9, 1.0 / 9);
}

absl::Status NoWorkers(const char* field, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is missing, and the cluster spec lists no workers, ", what));
}

absl::Status ResolveRounds(uint64_t listed_workers, Job::Strategy* strategy) {
  if (listed_workers == 0) return NoWorkers(kGradients, "which would set it; give it a number");
  if (listed_workers > strategy->window_steps) {
    return absl::InvalidArgumentError(
        absl::StrCat(kGradients, " is missing, and the cluster spec lists ", listed_workers,
                     " workers; must be at most $.strategy.window_steps, ", strategy->window_steps,
                     ", as a round lies in the window. Raise that, or give the field"));
  }
  strategy->gradients_per_update = listed_workers;
  return absl::OkStatus();
}

absl::Status ResolveOuterOptimizer(uint64_t listed_workers, Job::Strategy* strategy) {
  if (listed_workers == 0) return NoWorkers(kOuter, "which would set its momentum; give the field");
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> outer,
                         MakeOuterOptimizer(OuterOptimizerFor(listed_workers), kOuter));
  strategy->outer_optimizer = outer->config();
  return absl::OkStatus();
}

}  // namespace

bool DependsOnWorkerCount(const Job& job) {
  const Job::Strategy& strategy = job.strategy;
  if (strategy.sync()) return strategy.gradients_per_update == 0;
  if (strategy.local()) return strategy.outer_optimizer.empty();
  return strategy.scales_by_workers() && strategy.workers == 0;
}

absl::Status ResolveStrategy(uint64_t listed_workers, Job* job) {
  if (!DependsOnWorkerCount(*job)) return absl::OkStatus();
  Job::Strategy& strategy = job->strategy;
  if (strategy.sync()) return ResolveRounds(listed_workers, &strategy);
  if (strategy.local()) return ResolveOuterOptimizer(listed_workers, &strategy);
  if (listed_workers == 0)
    return NoWorkers("$.strategy.workers", "which would set it; give it a number");
  strategy.workers = listed_workers;
  return absl::OkStatus();
}

void TakeResolvedFrom(const Job& run, Job* job) {
  if (!DependsOnWorkerCount(*job) || run.strategy.name != job->strategy.name) return;
  // Keep all other differences, so that a comparison of the jobs shows them.
  if (job->strategy.sync()) {
    job->strategy.gradients_per_update = run.strategy.gradients_per_update;
  } else if (job->strategy.local()) {
    job->strategy.outer_optimizer = run.strategy.outer_optimizer;
  } else {
    job->strategy.workers = run.strategy.workers;
  }
}

absl::Status CheckRounds(const Job& job, uint64_t steps_per_epoch) {
  const uint64_t gradients = job.strategy.gradients_per_update;
  if (!job.strategy.in_rounds() || gradients <= steps_per_epoch) return absl::OkStatus();
  const uint64_t examples = job.batch_size * job.strategy.batches_per_step;
  return absl::InvalidArgumentError(
      absl::StrCat(kGradients, " is ", gradients, ", but an epoch has only ", steps_per_epoch,
                   " steps, of ", examples, examples == 1 ? " example" : " examples",
                   " each: an update would never have its gradients. Give at most ",
                   steps_per_epoch, ", or a smaller $.batch_size",
                   job.strategy.local() ? " or $.strategy.batches_per_step" : ""));
}

BatchPlan BatchPlanOf(const Job& job, uint64_t examples) {
  return BatchPlan({.examples = examples,
                    .batch_size = static_cast<uint64_t>(job.batch_size),
                    .batches_per_step = job.strategy.batches_per_step,
                    .epochs = job.epochs,
                    .steps = job.steps});
}

RateScale RateScaleOf(const Job& job) {
  const Job::Strategy& strategy = job.strategy;
  RateScale scale = {.by_staleness = strategy.learning_rate_by_staleness};
  if (strategy.scale_learning_rate.empty()) return scale;
  const uint64_t gradients = std::max<uint64_t>(strategy.gradients_per_update, 1);
  const auto at_once = static_cast<double>(strategy.sync() ? gradients : WorkersOf(strategy));
  scale.factor = strategy.scale_learning_rate == "linear" ? at_once : std::sqrt(at_once);
  scale.warmup_updates = (strategy.warmup_steps + gradients - 1) / gradients;
  return scale;
}

std::string MomentumOption(const json& optimizer) {
  for (const char* option : {"momentum", "beta_1"}) {
    const auto& config = optimizer["config"];
    if (config.contains(option) && config[option].is_number() && config[option] > 0) return option;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakePsOptimizer(const Job& job) {
  if (!job.strategy.local()) {
    if (!job.strategy.momentum_by_workers) return MakeOptimizer(job.optimizer);
    json optimizer = json::parse(job.optimizer);
    if (const std::string option = MomentumOption(optimizer); !option.empty()) {
      json& momentum = optimizer["config"][option];
      momentum = momentum.get<double>() * MomentumShare(WorkersOf(job.strategy));
    }
    return MakeOptimizer(optimizer.dump());
  }
  const std::string& outer = job.strategy.outer_optimizer;
  return MakeOuterOptimizer(outer.empty() ? OuterOptimizerFor(1) : outer, kOuter);
}

std::vector<Variable> VariablesOfPs(const Job& job, std::vector<Variable> variables) {
  for (Variable& variable : variables) {
    if (variable.rule == UpdateRule::kMovingAverage) {
      variable.momentum =
          std::pow(variable.momentum, static_cast<double>(job.strategy.batches_per_step));
    }
  }
  return variables;
}

}  // namespace shoal
