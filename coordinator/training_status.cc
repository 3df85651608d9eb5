// What a TrainingRun says of itself: its answer to Cluster.Status, and whom it waits for.

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/version.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

constexpr size_t kEpochsInStatus = 100;
// Workers say what they are at after 5 to 10 s.
constexpr Time kStepUnexplained = std::chrono::seconds(11);
constexpr int kMostWaitingWorkers = 8;  // in lines of their own

}  // namespace

proto::StatusReply TrainingRun::Status() const {
  const Time now = options_.loop->Now();
  proto::StatusReply reply;
  reply.set_version(kVersion);
  reply.set_job_name(options_.job.name);
  reply.set_job_fingerprint(fingerprint_);
  reply.set_run_dir(options_.run_dir);
  reply.set_process(lease_->Process());
  reply.set_uptime_seconds(ToSeconds(now - started_));
  reply.set_phase(PhaseName(phase()));
  reply.set_error(ending_->failure());
  for (const std::string& line : Waiting()) reply.add_waiting(line);
  reply.set_term(fleet_->term());
  reply.set_timeline(fleet_->timeline());
  if (plan_.has_value()) {
    reply.set_total_steps(plan_->total_steps());
    reply.set_steps_per_epoch(plan_->steps_per_epoch());
    reply.set_epochs(plan_->epochs());
  }
  FillProgress(&reply);
  FillCheckpoint(&reply);
  for (const RunVerdict::Best& best : history_->verdict().best) {
    proto::BestEpoch* out = reply.add_best();
    out->set_figure(best.figure);
    out->set_value(best.value);
    out->set_epoch(best.epoch);
    if (best.checkpoint.has_value()) out->set_directory(best.checkpoint->directory);
  }
  if (history_->verdict().ended_after.has_value())
    reply.set_ended_after_epoch(*history_->verdict().ended_after);
  FillTasks(&reply);
  return reply;
}

void TrainingRun::FillProgress(proto::StatusReply* reply) const {
  const Time now = options_.loop->Now();
  if (handout_->open()) {
    reply->set_base_step(handout_->steps().base());
    reply->set_steps_done(handout_->steps().done_count());
    reply->set_steps_leased_again(handout_->leased_again());
  }
  if (const std::optional<uint64_t> epoch = RunningEpoch()) {
    reply->set_epoch(*epoch);
    if (const auto latest = progress_.Latest(*epoch)) {
      reply->set_loss(latest->loss());
      *reply->mutable_metrics() = latest->metrics();
    }
  }
  reply->set_steps_per_second(progress_.steps_per_second(now));
  reply->set_examples_per_second(progress_.examples_per_second(now));
  const auto& history = progress_.history();
  auto epoch = history.size() > kEpochsInStatus ? std::prev(history.end(), kEpochsInStatus)
                                                : history.begin();
  for (; epoch != history.end(); ++epoch) *reply->add_history() = epoch->second;
  reply->set_steps_done_here(steps_done_here_);
  if (handout_->evaluation() != nullptr) {
    reply->set_evaluation_batches_done(handout_->evaluation()->batches().done_count());
    reply->set_evaluation_batches(handout_->evaluation()->batches().total_steps());
  }
}

void TrainingRun::FillCheckpoint(proto::StatusReply* reply) const {
  const std::optional<StoredCheckpoint>& newest = checkpointer_->newest();
  if (!newest.has_value() && checkpointer_->last_error().empty()) return;
  proto::CheckpointStatus* checkpoint = reply->mutable_last_checkpoint();
  checkpoint->set_last_error(checkpointer_->last_error());
  if (!newest.has_value()) return;
  checkpoint->set_directory(newest->directory);
  checkpoint->set_step(newest->manifest.cut_step);
  if (checkpointer_->last().has_value())
    checkpoint->set_age_seconds(ToSeconds(options_.loop->Now() - checkpointer_->last_at()));
  checkpoint->set_size_bytes(newest->size_bytes());
  checkpoint->set_not_finite(newest->manifest.not_finite);
  checkpoint->set_duration_seconds(ToSeconds(checkpointer_->last_duration()));
}

TrainingRun::Phase TrainingRun::phase() const {
  if (!ending_->failure().empty()) return Phase::kFailed;
  switch (ending_->phase()) {
    case RunEnding::Phase::kWorking:
      break;
    case RunEnding::Phase::kSaving:
    case RunEnding::Phase::kDismissingWorkers:
    case RunEnding::Phase::kDismissingPs:
      return Phase::kFinished;
    case RunEnding::Phase::kOver:
      return ending_->outcome().ok() ? Phase::kFinished : Phase::kStopping;
  }
  if (closing_->stopping()) return Phase::kStopping;
  switch (fleet_->phase()) {
    case PsFleet::Phase::kClaiming:
      return Phase::kClaiming;
    case PsFleet::Phase::kLooking:
    case PsFleet::Phase::kLoading:
      return Phase::kLoading;
    case PsFleet::Phase::kLeading:
      break;
  }
  return Phase::kTraining;
}

const char* TrainingRun::PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kClaiming:
      return "claiming";
    case Phase::kLoading:
      return "loading";
    case Phase::kTraining:
      return "training";
    case Phase::kStopping:
      return "stopping";
    case Phase::kFinished:
      return "finished";
    case Phase::kFailed:
      return "failed";
  }
  return "";
}

std::optional<uint64_t> TrainingRun::RunningEpoch() const {
  if (!handout_->open() || !plan_.has_value()) return std::nullopt;
  return plan_->EpochOf(std::min(handout_->steps().base(), plan_->total_steps() - 1));
}

void TrainingRun::FillTasks(proto::StatusReply* reply) const {
  uint64_t applied = 0, repeated = 0, staleness_sum = 0, staleness_max = 0;
  for (int ps = 0; ps < fleet_->size(); ++ps) {
    const PsFleet::Peer& peer = fleet_->peer(ps);
    proto::TaskStatus* task = reply->add_tasks();
    task->set_type("ps");
    task->set_index(ps);
    task->set_address(options_.ps_addresses[ps]);
    const bool connected = peer.link != nullptr && peer.link->connected();
    task->set_state(!connected                                                    ? "connecting"
                    : fleet_->phase() == PsFleet::Phase::kLoading && !peer.loaded ? "loading"
                                                                                  : "up");
    if (peer.link != nullptr) task->set_detail(peer.link->last_error());
    if (!peer.claimed.has_value()) continue;
    task->set_done(peer.claimed->applied_chunks());
    task->set_lowest_updates(peer.claimed->lowest_updates());
    task->set_highest_updates(peer.claimed->highest_updates());
    applied += peer.claimed->applied_chunks();
    repeated += peer.claimed->repeated_chunks();
    staleness_sum += peer.claimed->staleness_sum();
    staleness_max = std::max<uint64_t>(staleness_max, peer.claimed->staleness_max());
  }
  reply->set_repeated_chunks(repeated);
  reply->set_staleness_max(staleness_max);
  if (applied > 0)
    reply->set_staleness_mean(static_cast<double>(staleness_sum) / static_cast<double>(applied));
  std::map<int, const Worker*> connected;
  for (const auto& [key, worker] : membership_->workers()) {
    if (worker->index >= 0) connected[worker->index] = worker.get();
  }
  for (const auto& [index, record] : membership_->records()) {
    proto::TaskStatus* task = reply->add_tasks();
    task->set_type("worker");
    task->set_index(index);
    task->set_address(record.address);
    task->set_state(StateName(record.state));
    task->set_detail(record.detail);
    task->set_done(record.steps_done);
    if (!connected.contains(index)) continue;
    const Worker& worker = *connected[index];
    if (!worker.waiting.what().empty()) task->set_detail(worker.waiting.what());
    if (record.expiries > 0) {
      task->set_detail(
          absl::StrCat(task->detail(), task->detail().empty() ? "" : "; ",
                       "finished no step within ", options_.job.strategy.lease_timeout_seconds,
                       " s, ", record.expiries, record.expiries == 1 ? " time" : " times",
                       ": raise $.strategy.lease_timeout_seconds where steps take so long"));
    }
    if (training()) task->set_held(handout_->steps().held(worker.key));
    if (worker.step_seconds > 0) task->set_steps_per_second(1 / worker.step_seconds);
  }
}

std::vector<std::string> TrainingRun::Waiting() const {
  std::vector<std::string> lines = fleet_->Waiting();
  const Time now = options_.loop->Now();
  if (const std::string holder = lease_->Waiting(); !holder.empty()) lines.push_back(holder);
  if (!ending_->working() || fleet_->phase() != PsFleet::Phase::kLeading) return lines;
  if (!membership_->AnyReady()) {
    std::vector<std::string> known;
    for (const auto& [index, record] : membership_->records()) {
      known.push_back(absl::StrCat("worker ", index, ": ", StateName(record.state),
                                   record.detail.empty() ? "" : ", ", record.detail));
    }
    lines.push_back(
        absl::StrCat("a worker: none is ready since ",
                     WholeSeconds(now - handout_->nobody_since().value_or(now)), " s (",
                     known.empty() ? "none has come yet" : absl::StrJoin(known, "; "),
                     "); one more joins with shoal-worker --chief=", options_.chief_address));
  }
  const bool all_done =
      (training() && handout_->steps().base() >=
                         (awaits_results() ? cuts_->mandatory() : plan_->total_steps())) ||
      closing_->not_written_since().has_value();
  const bool is_final =
      closing_->not_written_since().has_value() || (all_done && handout_->steps().finished());
  if (all_done && !history_->error().empty() && awaits_results()) {
    lines.push_back(absl::StrCat("the epoch's result to be written (", history_->error(),
                                 "); it is tried again every ", WholeSeconds(kRetryCutAfter),
                                 " s"));
  }
  if (all_done && checkpointer_->idle() && !checkpointer_->last_error().empty()) {
    lines.push_back(absl::StrCat(
        "the ", is_final ? "final" : "epoch's", " checkpoint to be written since ",
        WholeSeconds(now - *checkpointer_->failing_since()), " s (", checkpointer_->last_error(),
        "); it is tried again every ", WholeSeconds(kRetryCutAfter), " s"));
  }
  if (requests_->checkpoint_wanted() && handout_->evaluation() != nullptr) {
    lines.push_back(absl::StrCat("the evaluation of epoch ", handout_->evaluation()->epoch() + 1,
                                 " (", handout_->evaluation()->batches().done_count(), " of ",
                                 handout_->evaluation()->batches().total_steps(),
                                 " batches done), after which the checkpoint that is asked for "
                                 "begins"));
  }
  if (const std::string cut = checkpointer_->Waiting(now); !cut.empty() && !CutIsComing(now)) {
    const std::string holder = training() ? OldestStep() : "";
    lines.push_back(absl::StrCat(cut, holder.empty() ? "" : "; ", holder));
  }
  int more = -kMostWaitingWorkers;
  for (const auto& [key, worker] : membership_->workers()) {
    if (worker->waiting.what().empty() || worker->waiting.computing() || ++more > 0) continue;
    lines.push_back(absl::StrCat("worker ", worker->index, ", which is ", worker->waiting.what()));
  }
  if (more > 0) lines.push_back(absl::StrCat(more, " more workers"));
  return lines;
}

// The cut in progress is not held up, and nobody waits for it: it lacks steps, of which the oldest
// one is being computed, as its worker says of a slow one.
bool TrainingRun::CutIsComing(Time now) const {
  if (!training() || closing_->closing() || requests_->checkpoint_wanted()) return false;
  if (!checkpointer_->accepted() || handout_->steps().base() >= checkpointer_->step()) return false;
  const Worker* const holder = HolderOfOldestStep();
  if (holder != nullptr && !holder->waiting.what().empty()) return holder->Computing(now);
  return now - std::max(progress_.last_step_at(), cuts_->last().at) < kStepUnexplained;
}

// Of the oldest step that is not done, on which a cut may depend; null: nobody.
const Worker* TrainingRun::HolderOfOldestStep() const {
  for (const auto& [key, worker] : membership_->workers()) {
    if (handout_->steps().Holds(key, handout_->steps().base())) return worker.get();
  }
  return nullptr;
}

std::string TrainingRun::OldestStep() const {
  const Worker* const holder = HolderOfOldestStep();
  if (holder == nullptr) return "";
  const std::string& what = holder->waiting.what();
  return absl::StrCat("step ", handout_->steps().base(), " is with worker ", holder->index,
                      what.empty() ? "" : ", which is ", what);
}

}  // namespace shoal
