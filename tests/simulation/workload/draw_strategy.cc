#include "tests/simulation/workload/draw_strategy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace shoal {

void DrawStrategy(Random& random, Workload* workload) {
  Job::Strategy& strategy = workload->job.strategy;
  const uint64_t which = random.Below(4);
  if (which < 2) return;
  if (random.Coin()) strategy.speculate_after = static_cast<double>(random.Between(1, 4));
  if (which == 3) {
    strategy.name = "sync";
    // The sum of two gradients does not show their order.
    const uint64_t gradients = random.OneIn(4) ? random.Between(1, 2) : random.Between(3, 9);
    strategy.gradients_per_update =
        std::min({gradients, strategy.window_steps, workload->plan().steps_per_epoch()});
  } else if (strategy.speculate_after == 0 || random.Coin()) {
    strategy.max_staleness = random.Below(2 * workload->workers + 2);
  }
}

void DrawLocal(Random& random, Workload* workload) {
  if (!random.OneIn(4)) return;
  Job& job = workload->job;
  Job::Strategy& strategy = job.strategy;
  strategy.name = "local";
  strategy.batches_per_step = uint64_t{1} << random.Below(3);
  strategy.outer_optimizer = std::exchange(job.optimizer, R"("adam")");
  if (strategy.in_rounds()) {
    strategy.gradients_per_update =
        std::min(strategy.gradients_per_update, workload->plan().steps_per_epoch());
  } else if (job.callbacks.empty() && !random.OneIn(4)) {
    workload->sums_in = Workload::SumsIn::kDelayed;
    workload->momentum_every = uint64_t{1} << random.Below(4);
    strategy.outer_optimizer = absl::StrFormat(
        R"({"class_name": "DelayedNesterov", "config": {"learning_rate": 1, "momentum": 1,
            "momentum_every": %d}})",
        workload->momentum_every);
  }
}

void DrawFragments(Random& random, Workload* workload) {
  Job::Strategy& strategy = workload->job.strategy;
  if (!strategy.local() || strategy.in_rounds() || strategy.max_staleness.has_value()) return;
  if (strategy.batches_per_step == 1 || random.Coin()) return;
  strategy.fragments = random.Between(2, 5);
}

void DrawLearningRates(Random& random, Workload* workload) {
  Job& job = workload->job;
  const bool async = !job.strategy.in_rounds() && !job.strategy.local();
  if (!async || !job.callbacks.empty() || !random.OneIn(3)) return;
  job.strategy.learning_rate_by_staleness = !random.OneIn(4);
  if (!job.strategy.learning_rate_by_staleness || random.OneIn(4)) {
    job.strategy.scale_learning_rate = random.Coin() ? "linear" : "sqrt";
    job.strategy.workers = static_cast<uint64_t>(workload->workers);
  }
  workload->sums_in = Workload::SumsIn::kSquares;
  job.optimizer = R"({"class_name": "Adagrad", "config": {"initial_accumulator_value": 0}})";
}

void DrawWarmUp(Random& random, Workload* workload) {
  Job::Strategy& strategy = workload->job.strategy;
  if (strategy.in_rounds() || strategy.local() || strategy.max_staleness.has_value()) return;
  if (!random.OneIn(4)) return;
  strategy.warmup_steps = random.Between(1, workload->plan().total_steps());
  strategy.workers = static_cast<uint64_t>(workload->workers);
}

void DrawOverflows(Random& random, Workload* workload) {
  const Job& job = workload->job;
  if (job.strategy.in_rounds() || job.strategy.local() || !job.callbacks.empty()) return;
  if (random.OneIn(3)) workload->overflows_one_in = random.Between(2, 20);
}

}  // namespace shoal
