#include "coordinator/run_parts.h"

#include <utility>

#include "common/base/check.h"

namespace shoal {
namespace {

// The parser has checked the names of the metrics.
std::vector<std::shared_ptr<const Metric>> MetricsOf(const Job& job) {
  auto metrics = MakeMetrics(job.metrics, job.weighted_metrics);
  SHOAL_CHECK(metrics.ok(), metrics.status().ToString());
  return *std::move(metrics);
}

}  // namespace

RunParts::RunParts(RunOptions run_options)
    : options(std::move(run_options)),
      job_text(options.job.ResolvedText()),
      fingerprint(options.job.Fingerprint()),
      paths{options.run_dir},
      store(paths.checkpoints(), options.files),
      started(options.loop->Now()),
      progress(MetricsOf(options.job)) {}

bool RunParts::LacksResult(const StoredCheckpoint& checkpoint) const {
  return IsAtEpochEnd(checkpoint.manifest) && !history->IsEvaluated(checkpoint.manifest.epoch);
}

CutPlan::Steps RunParts::StepsNow() const {
  return {.first_unleased = scheduler->CutTarget(),
          .leased = scheduler->steps().leased_count(),
          .per_second = progress.steps_per_second(options.loop->Now())};
}

void RunParts::CountRounds() {
  if (training() && rounds.has_value())
    progress.CountBelow(rounds->StartAt(scheduler->steps().base()));
}

}  // namespace shoal
