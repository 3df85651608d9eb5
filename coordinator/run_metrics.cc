// The metrics of a run for Prometheus.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/job/job_strategy.h"
#include "coordinator/run_view.h"

namespace shoal {
namespace {

double Number(uint64_t value) { return static_cast<double>(value); }

void AddMetrics(MetricName name,
                const google::protobuf::RepeatedPtrField<proto::MetricValue>& metrics,
                MetricSamples* out) {
  for (const proto::MetricValue& metric : metrics) out->Add(name, metric.value(), {metric.name()});
}

}  // namespace

void RunView::Collect(MetricSamples* out) const {
  CollectJob(out);
  CollectProgress(out);
  CollectTasks(out);
  CollectCheckpoints(out);
}

void RunView::CollectJob(MetricSamples* out) const {
  out->Add("shoal_job_info", 1, {parts_.options.job.name});
  for (const RunPhase each : kRunPhases)
    out->Add("shoal_phase", phase() == each ? 1 : 0, {PhaseName(each)});
  out->Add("shoal_waits", Number(Waiting().size()));
  out->Add("shoal_term", TermNumber(parts_.fleet->term()));
  out->Add("shoal_timeline", TermNumber(parts_.timeline()));
  out->Add("shoal_timelines_opened_total", Number(parts_.counters.timelines_opened));
  if (parts_.plan.has_value()) {
    out->Add("shoal_job_steps", Number(parts_.plan->total_steps()));
    out->Add("shoal_job_epochs", Number(parts_.plan->epochs()));
  }
  const uint64_t next = UpdatesDone() + 1;
  out->Add("shoal_learning_rate",
           parts_.job_optimizer->LearningRate(next) * RateScaleOf(parts_.options.job).Of(next, 0));
}

// Returns the updates of the job's optimizer so far, counted up to the first step that is not done.
uint64_t RunView::UpdatesDone() const {
  const uint64_t done = !parts_.scheduler->open() ? 0 : parts_.scheduler->steps().base();
  const Job& job = parts_.options.job;
  if (job.strategy.local()) {
    return parts_.plan.has_value() ? BatchPlanOf(job, parts_.plan->examples()).BatchesOf(done).first
                                   : 0;
  }
  const std::optional<RoundPlan>& rounds = parts_.scheduler->rounds();
  return rounds.has_value() ? rounds->CompleteRoundsBelow(done) : done;
}

void RunView::CollectProgress(MetricSamples* out) const {
  out->Add("shoal_steps_leased_total", Number(parts_.scheduler->counters().steps_leased));
  out->Add("shoal_steps_leased_again_total", Number(parts_.scheduler->leased_again()));
  out->Add("shoal_steps_leased_twice_total", Number(parts_.scheduler->leased_twice()));
  out->Add("shoal_steps_done_total", Number(parts_.counters.steps_done));
  out->Add("shoal_steps_repeated_total", Number(parts_.scheduler->counters().steps_repeated));
  out->Add("shoal_lease_expiries_total", Number(parts_.scheduler->counters().lease_expiries));
  out->Add("shoal_examples_total", Number(parts_.counters.examples));
  out->Add("shoal_evaluation_batches_total",
           Number(parts_.scheduler->counters().evaluation_batches));
  if (parts_.scheduler->open())
    out->Add("shoal_base_step", Number(parts_.scheduler->steps().base()));
  const std::optional<uint64_t> epoch = RunningEpoch();
  if (epoch.has_value()) out->Add("shoal_epoch", Number(*epoch + 1));
  if (const auto latest = parts_.progress.Latest(epoch.value_or(parts_.history->closed_epochs()))) {
    out->Add("shoal_loss", latest->loss());
    AddMetrics("shoal_metric", latest->metrics(), out);
  }
  const auto& history = parts_.progress.history();
  const auto tested = std::find_if(history.rbegin(), history.rend(),
                                   [](const auto& epoch) { return epoch.second.has_test_loss(); });
  if (tested != history.rend()) {
    out->Add("shoal_test_loss", tested->second.test_loss());
    AddMetrics("shoal_test_metric", tested->second.test_metrics(), out);
  }
}

void RunView::CollectTasks(MetricSamples* out) const {
  const Time now = now_;
  for (int ps = 0; ps < parts_.fleet->size(); ++ps) {
    const PsFleet::Peer& peer = parts_.fleet->peer(ps);
    const std::string index = absl::StrCat(ps);
    const bool up = peer.link != nullptr && peer.link->connected();
    out->Add("shoal_task_up", up ? 1 : 0, {"ps", index});
    out->Add("shoal_task_restarts_total", Number(peer.restarts), {"ps", index});
    if (const std::optional<PsFleet::Wait> wait = parts_.fleet->WaitFor(ps))
      out->Add("shoal_waiting_seconds", ToSeconds(now - wait->since), {"ps", index, wait->why});
  }
  uint64_t ready = 0;
  for (const auto& [key, worker] : parts_.membership->workers()) {
    ready += worker->ready ? 1 : 0;
    out->Add("shoal_leased_steps",
             parts_.scheduler->begun() ? Number(parts_.scheduler->steps().held(key)) : 0,
             {absl::StrCat(worker->index)});
  }
  out->Add("shoal_workers_ready", Number(ready));
  out->Add("shoal_rejected_jobs_total", Number(parts_.membership->of_another_job()), {"worker"});
  out->Add("shoal_rejected_jobs_total", Number(parts_.evaluator->peer().of_another_job()),
           {"evaluator"});
  if (parts_.scheduler->nobody_since().has_value())
    out->Add("shoal_waiting_seconds", ToSeconds(now - *parts_.scheduler->nobody_since()),
             {"worker", "", "none is ready"});
  for (const auto& [worker, record] : parts_.membership->records()) {
    if (record.state == Membership::Record::State::kLeft) continue;
    const std::string index = absl::StrCat(worker);
    out->Add("shoal_task_up", record.state == Membership::Record::State::kLost ? 0 : 1,
             {"worker", index});
    out->Add("shoal_task_restarts_total", Number(record.restarts), {"worker", index});
  }
}

void RunView::CollectCheckpoints(MetricSamples* out) const {
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  const Time since = last.has_value() ? parts_.checkpointer->last_at() : parts_.started;
  out->Add("shoal_checkpoints_total", Number(parts_.checkpointer->committed()));
  out->Add("shoal_checkpoint_failures_total", Number(parts_.checkpointer->failures()));
  out->Add("shoal_checkpoint_age_seconds", ToSeconds(now_ - since));
  if (parts_.options.job.checkpoint.every_seconds > 0)
    out->Add("shoal_checkpoint_interval_seconds", parts_.options.job.checkpoint.every_seconds);
  out->Add("shoal_checkpoint_step", last.has_value() ? Number(last->manifest.cut_step) : 0);
  out->Add("shoal_checkpoint_duration_seconds", ToSeconds(parts_.checkpointer->last_duration()));
  out->Add("shoal_checkpoint_bytes", last.has_value() ? Number(last->size_bytes()) : 0);
}

}  // namespace shoal
