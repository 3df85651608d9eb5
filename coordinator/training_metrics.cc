// What a TrainingRun shows to Prometheus. Every count here belongs to the loop's thread.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

double Number(uint64_t value) { return static_cast<double>(value); }

void AddMetrics(MetricName name,
                const google::protobuf::RepeatedPtrField<proto::MetricValue>& metrics,
                MetricSamples* out) {
  for (const proto::MetricValue& metric : metrics) out->Add(name, metric.value(), {metric.name()});
}

}  // namespace

std::string TrainingRun::NotReady() const {
  if (ending_->over()) return "the run is over";
  return closing_->stopping() ? "stopping" : "";
}

void TrainingRun::Collect(MetricSamples* out) const {
  CollectJob(out);
  CollectProgress(out);
  CollectTasks(out);
  CollectCheckpoints(out);
}

void TrainingRun::CollectJob(MetricSamples* out) const {
  out->Add("shoal_job_info", 1, {options_.job.name});
  for (const Phase each : kPhases)
    out->Add("shoal_phase", phase() == each ? 1 : 0, {PhaseName(each)});
  out->Add("shoal_waits", Number(Waiting().size()));
  out->Add("shoal_term", TermNumber(fleet_->term()));
  out->Add("shoal_timeline", TermNumber(timeline()));
  out->Add("shoal_timelines_opened_total", Number(counters_.timelines_opened));
  if (plan_.has_value()) {
    out->Add("shoal_job_steps", Number(plan_->total_steps()));
    out->Add("shoal_job_epochs", Number(plan_->epochs()));
  }
  // Of the update that comes after the steps that are done, as far as these have no hole.
  const uint64_t done = !handout_->open() ? 0 : handout_->steps().base();
  out->Add("shoal_learning_rate", optimizer_->LearningRate(done + 1));
}

void TrainingRun::CollectProgress(MetricSamples* out) const {
  out->Add("shoal_steps_leased_total", Number(handout_->counters().steps_leased));
  out->Add("shoal_steps_leased_again_total", Number(handout_->leased_again()));
  out->Add("shoal_steps_done_total", Number(steps_done_here_));
  out->Add("shoal_steps_repeated_total", Number(handout_->counters().steps_repeated));
  out->Add("shoal_lease_expiries_total", Number(handout_->counters().lease_expiries));
  out->Add("shoal_examples_total", Number(counters_.examples));
  out->Add("shoal_evaluation_batches_total", Number(handout_->counters().evaluation_batches));
  if (handout_->open()) out->Add("shoal_base_step", Number(handout_->steps().base()));
  const std::optional<uint64_t> epoch = RunningEpoch();
  if (epoch.has_value()) out->Add("shoal_epoch", Number(*epoch + 1));
  if (const auto latest = progress_.Latest(epoch.value_or(history_->closed_epochs()))) {
    out->Add("shoal_loss", latest->loss());
    AddMetrics("shoal_metric", latest->metrics(), out);
  }
  const auto& history = progress_.history();
  const auto tested = std::find_if(history.rbegin(), history.rend(),
                                   [](const auto& epoch) { return epoch.second.has_test_loss(); });
  if (tested != history.rend()) {
    out->Add("shoal_test_loss", tested->second.test_loss());
    AddMetrics("shoal_test_metric", tested->second.test_metrics(), out);
  }
}

void TrainingRun::CollectTasks(MetricSamples* out) const {
  const Time now = options_.loop->Now();
  for (int ps = 0; ps < fleet_->size(); ++ps) {
    const PsFleet::Peer& peer = fleet_->peer(ps);
    const std::string index = absl::StrCat(ps);
    const bool up = peer.link != nullptr && peer.link->connected();
    out->Add("shoal_task_up", up ? 1 : 0, {"ps", index});
    out->Add("shoal_task_restarts_total", Number(peer.restarts), {"ps", index});
    if (const std::optional<PsFleet::Wait> wait = fleet_->WaitFor(ps))
      out->Add("shoal_waiting_seconds", ToSeconds(now - wait->since), {"ps", index, wait->why});
  }
  uint64_t ready = 0;
  for (const auto& [key, worker] : membership_->workers()) {
    if (worker->index < 0) continue;
    ready += worker->ready ? 1 : 0;
    out->Add("shoal_leased_steps", training() ? Number(handout_->steps().held(key)) : 0,
             {absl::StrCat(worker->index)});
  }
  out->Add("shoal_workers_ready", Number(ready));
  if (handout_->nobody_since().has_value())
    out->Add("shoal_waiting_seconds", ToSeconds(now - *handout_->nobody_since()),
             {"worker", "", "none is ready"});
  for (const auto& [worker, record] : membership_->records()) {
    if (record.state == Membership::Record::State::kLeft) continue;
    const std::string index = absl::StrCat(worker);
    out->Add("shoal_task_up", record.state == Membership::Record::State::kLost ? 0 : 1,
             {"worker", index});
    out->Add("shoal_task_restarts_total", Number(record.restarts), {"worker", index});
  }
}

void TrainingRun::CollectCheckpoints(MetricSamples* out) const {
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();
  const Time since = last.has_value() ? checkpointer_->last_at() : started_;
  out->Add("shoal_checkpoints_total", Number(checkpointer_->committed()));
  out->Add("shoal_checkpoint_failures_total", Number(checkpointer_->failures()));
  out->Add("shoal_checkpoint_age_seconds", ToSeconds(options_.loop->Now() - since));
  if (options_.job.checkpoint.every_seconds > 0)
    out->Add("shoal_checkpoint_interval_seconds", options_.job.checkpoint.every_seconds);
  out->Add("shoal_checkpoint_step", last.has_value() ? Number(last->manifest.cut_step) : 0);
  out->Add("shoal_checkpoint_duration_seconds", ToSeconds(checkpointer_->last_duration()));
  out->Add("shoal_checkpoint_bytes", last.has_value() ? Number(last->size_bytes()) : 0);
}

}  // namespace shoal
