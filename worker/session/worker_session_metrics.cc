// The stats of a WorkerSession for Prometheus. Only the loop thread uses them.

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "worker/session/worker_session.h"

namespace shoal {

// Returns the phase that counts an activity's time. Empty for training: the step's outcome has its
// own times.
std::optional<WorkerStats::Phase> WorkerSession::PhaseOf(Activity activity) {
  switch (activity) {
    case Activity::kIdle:
      return WorkerStats::kIdle;
    case Activity::kPulling:
      return WorkerStats::kPull;
    case Activity::kTraining:
      return std::nullopt;
    case Activity::kPullingCut:
    case Activity::kEvaluating:
      break;
  }
  return WorkerStats::kEvaluate;
}

void WorkerSession::Collect(MetricSamples* out) const {
  link_.Collect(out);
  out->Add("shoal_worker_timeline", TermNumber(timeline_));
  out->Add("shoal_worker_leased_steps", static_cast<double>(leases_.size()));
  // Includes the current activity. This shows a worker that is stuck in one.
  WorkerStats stats = stats_;
  if (const auto phase = PhaseOf(activity_))
    stats.AddTime(*phase, options_.loop->Now() - activity_began_);
  stats.Collect(out);
  CollectWaits(out);
  if (exchange_ != nullptr) exchange_->Collect(out);
}

// Adds the same waits as WatchWaits(), but without its minimum time.
void WorkerSession::CollectWaits(MetricSamples* out) const {
  const auto add = [&](const char* type, int index, const char* why, Time since) {
    out->Add("shoal_worker_waiting_seconds", ToSeconds(options_.loop->Now() - since),
             {type, absl::StrCat(index), why});
  };
  if (!prepared_.has_value() || Computes()) return;
  if (activity_ == Activity::kIdle) {
    if (link_.welcomed())
      add("chief", 0, timeline_ == 0 ? "no timeline" : "no steps", activity_began_);
    return;
  }
  for (const ParameterExchange::Wait& wait : exchange_->Waits())
    add("ps", wait.ps, wait.connected ? "no answer" : "no connection", activity_began_);
}

absl::Status WorkerSession::CheckReady() const {
  if (link_.over()) return absl::FailedPreconditionError("the work is over");
  if (draining_) return absl::FailedPreconditionError("draining");
  if (preparing_) return absl::UnavailableError("opening the job's data");
  return absl::OkStatus();
}

}  // namespace shoal
