#include "coordinator/run_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"
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

void RunParts::Fail(RunFailure why) {
  scheduler->End();
  if (!failure.has_value() || absl::IsAborted(why.status)) failure = std::move(why);
}

bool RunParts::LacksResult(const StoredCheckpoint& checkpoint) const {
  return IsAtEpochEnd(checkpoint.manifest) && !history->IsEvaluated(checkpoint.manifest.epoch);
}

absl::Status RunParts::CheckTestSet(const proto::EvaluatorReady& ready) const {
  if (ready.test_examples() == 0)
    return absl::InvalidArgumentError(
        "this evaluator sees no test examples ($.data.test); give it the same data as the workers");
  if (!plan.has_value() || ready.test_examples() == test_examples) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "this evaluator sees ", ready.test_examples(), " test examples, but the run has ",
      test_examples, ", according to ", counts_source, ". Give it the same data as the workers"));
}

// The result of an epoch that is not closed cannot be kept yet, and a restore may still drop the
// epoch.
bool RunParts::MayBeEvaluated(const StoredCheckpoint& checkpoint) const {
  if (!history->takes_results()) return false;
  return !IsAtEpochEnd(checkpoint.manifest) || checkpoint.manifest.epoch < history->closed_epochs();
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
