// The answer to Cluster.Status, and the list of what a run waits for.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/version.h"
#include "coordinator/run/csv_writer.h"
#include "coordinator/run_view.h"

namespace shoal {
namespace {

constexpr size_t kEpochsInStatus = 100;
// Workers report a long step after 5 to 10 s.
constexpr Time kStepUnexplained = std::chrono::seconds(11);
constexpr int kMaxWaitingWorkers = 8;  // max workers with a line of their own

}  // namespace

proto::StatusReply RunView::Status() const {
  const Time now = now_;
  proto::StatusReply reply;
  reply.set_version(kVersion);
  reply.set_job_name(parts_.options.job.name);
  reply.set_job_fingerprint(parts_.fingerprint);
  reply.set_run_dir(parts_.paths.directory);
  reply.set_process(parts_.lock->Process());
  reply.set_uptime_seconds(ToSeconds(now - parts_.started));
  reply.set_phase(PhaseName(phase()));
  reply.set_error(parts_.shutdown->failure());
  for (const std::string& line : Waiting()) reply.add_waiting(line);
  reply.set_term(parts_.fleet->term());
  reply.set_timeline(parts_.fleet->timeline());
  if (parts_.plan.has_value()) {
    reply.set_total_steps(parts_.plan->total_steps());
    reply.set_steps_per_epoch(parts_.plan->steps_per_epoch());
    reply.set_epochs(parts_.plan->epochs());
  }
  FillProgress(&reply);
  FillCheckpoint(&reply);
  FillVerdict(parts_.history->verdict(), &reply);
  FillTasks(&reply);
  return reply;
}

void RunView::FillProgress(proto::StatusReply* reply) const {
  const Time now = now_;
  if (parts_.scheduler->open()) {
    reply->set_base_step(parts_.scheduler->steps().base());
    reply->set_steps_done(parts_.scheduler->steps().done_count());
    reply->set_steps_leased_again(parts_.scheduler->leased_again());
  }
  if (const std::optional<uint64_t> epoch = RunningEpoch()) {
    reply->set_epoch(*epoch);
    if (const auto latest = parts_.progress.Latest(*epoch)) {
      reply->set_loss(latest->loss());
      *reply->mutable_metrics() = latest->metrics();
    }
  }
  reply->set_steps_per_second(parts_.progress.steps_per_second(now));
  reply->set_examples_per_second(parts_.progress.examples_per_second(now));
  const auto& history = parts_.progress.history();
  auto epoch = history.size() > kEpochsInStatus ? std::prev(history.end(), kEpochsInStatus)
                                                : history.begin();
  for (; epoch != history.end(); ++epoch) *reply->add_history() = epoch->second;
  reply->set_steps_done_here(parts_.counters.steps_done);
  if (parts_.scheduler->evaluation() != nullptr) {
    reply->set_evaluation_batches_done(parts_.scheduler->evaluation()->batches().done_count());
    reply->set_evaluation_batches(parts_.scheduler->evaluation()->batches().total_steps());
  }
}

void RunView::FillCheckpoint(proto::StatusReply* reply) const {
  const std::optional<StoredCheckpoint>& newest = parts_.checkpointer->newest();
  if (!newest.has_value() && parts_.checkpointer->last_error().empty()) return;
  proto::CheckpointStatus* checkpoint = reply->mutable_last_checkpoint();
  checkpoint->set_last_error(parts_.checkpointer->last_error());
  if (!newest.has_value()) return;
  checkpoint->set_directory(newest->directory);
  checkpoint->set_step(newest->manifest.cut_step);
  if (parts_.checkpointer->last().has_value())
    checkpoint->set_age_seconds(ToSeconds(now_ - parts_.checkpointer->last_at()));
  checkpoint->set_size_bytes(newest->size_bytes());
  checkpoint->set_not_finite(newest->manifest.not_finite);
  checkpoint->set_duration_seconds(ToSeconds(parts_.checkpointer->last_duration()));
}

RunPhase RunView::phase() const {
  if (!parts_.shutdown->failure().empty()) return RunPhase::kFailed;
  switch (parts_.shutdown->phase()) {
    case Shutdown::Phase::kWorking:
    case Shutdown::Phase::kBrokenOff:
      break;
    case Shutdown::Phase::kSaving:
    case Shutdown::Phase::kDismissingWorkers:
    case Shutdown::Phase::kDismissingPs:
    case Shutdown::Phase::kDismissingEvaluator:
    case Shutdown::Phase::kOver:
      return RunPhase::kFinished;
  }
  if (parts_.drain->stopping()) return RunPhase::kStopping;
  switch (parts_.fleet->phase()) {
    case PsFleet::Phase::kClaiming:
      return RunPhase::kClaiming;
    case PsFleet::Phase::kLooking:
    case PsFleet::Phase::kLoading:
      return RunPhase::kLoading;
    case PsFleet::Phase::kLeading:
      break;
  }
  return RunPhase::kTraining;
}

const char* PhaseName(RunPhase phase) {
  switch (phase) {
    case RunPhase::kClaiming:
      return "claiming";
    case RunPhase::kLoading:
      return "loading";
    case RunPhase::kTraining:
      return "training";
    case RunPhase::kStopping:
      return "stopping";
    case RunPhase::kFinished:
      return "finished";
    case RunPhase::kFailed:
      return "failed";
  }
  return "";
}

std::optional<uint64_t> RunView::RunningEpoch() const {
  if (!parts_.scheduler->open() || !parts_.plan.has_value()) return std::nullopt;
  return parts_.plan->EpochOf(
      std::min(parts_.scheduler->steps().base(), parts_.plan->total_steps() - 1));
}

const char* RunView::StateOfPs(const PsFleet::Peer& peer) const {
  if (peer.link == nullptr || !peer.link->connected())
    return peer.hello.has_value() ? "lost" : "connecting";
  return parts_.fleet->phase() == PsFleet::Phase::kLoading && !peer.loaded ? "loading" : "up";
}

void RunView::FillTasks(proto::StatusReply* reply) const {
  uint64_t applied = 0, repeated = 0, staleness_sum = 0, staleness_max = 0;
  for (int ps = 0; ps < parts_.fleet->size(); ++ps) {
    const PsFleet::Peer& peer = parts_.fleet->peer(ps);
    proto::TaskStatus* task = reply->add_tasks();
    task->set_type("ps");
    task->set_index(ps);
    task->set_address(parts_.options.ps_addresses[ps]);
    task->set_state(StateOfPs(peer));
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
  for (const auto& [key, worker] : parts_.membership->workers())
    connected[worker->index] = worker.get();
  const std::map<int, Membership::Record>& records = parts_.membership->records();
  std::set<int> indices = parts_.options.listed_workers;
  for (const auto& [index, record] : records) indices.insert(index);
  for (const int index : indices) {
    proto::TaskStatus* task = reply->add_tasks();
    task->set_type("worker");
    task->set_index(index);
    const auto found = records.find(index);
    if (found == records.end()) {
      task->set_state("connecting");
      task->set_detail("not connected yet");
      continue;
    }
    const Membership::Record& record = found->second;
    task->set_address(record.address);
    task->set_state(StateName(record.state));
    task->set_detail(record.detail);
    task->set_done(record.steps_done);
    if (!connected.contains(index)) continue;
    const Worker& worker = *connected[index];
    task->set_device(worker.hello.device());
    if (!worker.waiting.what().empty()) task->set_detail(worker.waiting.what());
    if (record.expiries > 0) {
      task->set_detail(absl::StrCat(
          task->detail(), task->detail().empty() ? "" : "; ", "finished no step within ",
          parts_.options.job.strategy.lease_timeout_seconds, " s, ", record.expiries,
          record.expiries == 1 ? " time" : " times",
          ": raise $.strategy.lease_timeout_seconds if its steps take longer"));
    }
    if (parts_.scheduler->begun()) task->set_held(parts_.scheduler->steps().held(worker.key));
    if (worker.step_seconds > 0) task->set_steps_per_second(1 / worker.step_seconds);
  }
  FillEvaluator(reply);
}

void RunView::FillEvaluator(proto::StatusReply* reply) const {
  const EvaluatorPeer& peer = parts_.evaluator->peer();
  if (peer.state() == EvaluatorPeer::State::kNone) return;
  proto::TaskStatus* task = reply->add_tasks();
  task->set_type("evaluator");
  task->set_address(peer.address());
  task->set_state(StateName(peer.state()));
  task->set_done(parts_.evaluator->evaluated());
  const std::string doing = parts_.evaluator->CurrentActivity();
  task->set_detail(doing.empty() ? peer.detail() : doing);
}

std::string RunView::EvaluatorsPart() const {
  const EvaluatorPeer& peer = parts_.evaluator->peer();
  const std::string doing = parts_.evaluator->CurrentActivity();
  return absl::StrCat("the evaluator (",
                      peer.address().empty() ? "not connected yet" : peer.address(),
                      peer.state() == EvaluatorPeer::State::kNone ? "" : ", ",
                      peer.state() == EvaluatorPeer::State::kNone ? "" : StateName(peer.state()),
                      doing.empty() ? "" : "; ", doing, ")");
}

std::vector<std::string> RunView::Waiting() const {
  if (parts_.shutdown->phase() == Shutdown::Phase::kDismissingEvaluator)
    return {EvaluatorsPart() +
            (parts_.shutdown->failure().empty()
                 ? ": the job ends when the last checkpoint is evaluated"
                 : ": the job has failed, and ends once the evaluator is told, within 5 s")};
  std::vector<std::string> lines = parts_.fleet->Waiting();
  const Time now = now_;
  if (const std::string holder = parts_.lock->Waiting(); !holder.empty()) lines.push_back(holder);
  if (!parts_.shutdown->working() || parts_.fleet->phase() != PsFleet::Phase::kLeading)
    return lines;
  if (!parts_.membership->AnyReady()) {
    std::vector<std::string> known;
    for (const auto& [index, record] : parts_.membership->records()) {
      known.push_back(absl::StrCat("worker ", index, ": ", StateName(record.state),
                                   record.detail.empty() ? "" : ", ", record.detail));
    }
    lines.push_back(absl::StrCat(
        "a worker: none has been ready for ",
        WholeSeconds(now - parts_.scheduler->nobody_since().value_or(now)), " s (",
        known.empty() ? "none has connected yet" : absl::StrJoin(known, "; "),
        "); one more joins with shoal-worker --chief=", parts_.options.coordinator_address,
        parts_.options.tls ? " --tls_dir=DIR" : ""));
  }
  const bool all_done =
      (parts_.scheduler->begun() &&
       parts_.scheduler->steps().base() >=
           (parts_.awaits_results() ? parts_.cuts->mandatory() : parts_.plan->total_steps())) ||
      parts_.drain->not_written_since().has_value();
  const bool is_final = parts_.drain->not_written_since().has_value() ||
                        (all_done && parts_.scheduler->steps().finished());
  if (!parts_.history->last_read().ok()) {
    lines.push_back(absl::StrCat(
        "the results of earlier epochs to be read (", parts_.history->last_read().message(),
        "); until then only a stop or a ps that leaves gets a checkpoint; retried every ",
        WholeSeconds(CsvWriter::kRetryReadAfter), " s"));
  }
  if (all_done && !parts_.history->last_write().ok() && parts_.awaits_results()) {
    lines.push_back(absl::StrCat("the epoch's result to be written (",
                                 parts_.history->last_write().message(), "); retried every ",
                                 WholeSeconds(CsvWriter::kRetryWriteAfter), " s"));
  }
  if (all_done && parts_.checkpointer->idle() && !parts_.checkpointer->last_error().empty()) {
    lines.push_back(absl::StrCat("the ", is_final ? "final" : "epoch's",
                                 " checkpoint, whose writes have failed for ",
                                 WholeSeconds(now - *parts_.checkpointer->failing_since()), " s (",
                                 parts_.checkpointer->last_error(), "); retried every ",
                                 WholeSeconds(kRetryCutAfter), " s"));
  }
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  if (parts_.awaits_results() && all_done && parts_.checkpointer->idle() && last.has_value() &&
      !parts_.history->IsEvaluated(parts_.cuts->epoch()) && parts_.evaluator->WillBring(*last)) {
    lines.push_back(absl::StrCat(EvaluatorsPart(), ": the result of epoch ",
                                 parts_.cuts->epoch() + 1, " decides whether training continues"));
  }
  if (parts_.requests->checkpoint_wanted() && parts_.scheduler->evaluation() != nullptr) {
    lines.push_back(absl::StrCat("the evaluation of epoch ",
                                 parts_.scheduler->evaluation()->epoch() + 1, " (",
                                 parts_.scheduler->evaluation()->batches().done_count(), " of ",
                                 parts_.scheduler->evaluation()->batches().total_steps(),
                                 " batches done); the requested checkpoint begins after it"));
  }
  if (const std::string cut = parts_.checkpointer->Waiting(now);
      !cut.empty() && !CutIsComing(now)) {
    const std::string holder = parts_.scheduler->begun() ? OldestStep() : "";
    lines.push_back(absl::StrCat(cut, holder.empty() ? "" : "; ", holder));
  }
  int more = -kMaxWaitingWorkers;
  for (const auto& [key, worker] : parts_.membership->workers()) {
    if (worker->waiting.what().empty() || worker->waiting.computing() || ++more > 0) continue;
    lines.push_back(absl::StrCat("worker ", worker->index, ", which is ", worker->waiting.what()));
  }
  if (more > 0) lines.push_back(absl::StrCat(more, " more workers"));
  return lines;
}

// Returns true if the cut in progress needs no mention: no operator waits for it, and it only lacks
// steps, of which the oldest is being computed. The worker of a slow step reports that it computes.
bool RunView::CutIsComing(Time now) const {
  if (!parts_.scheduler->begun() || parts_.drain->closing() || parts_.requests->checkpoint_wanted())
    return false;
  if (!parts_.checkpointer->accepted() ||
      parts_.scheduler->steps().base() >= parts_.checkpointer->step())
    return false;
  const Worker* const holder = HolderOfOldestStep();
  if (holder != nullptr && !holder->waiting.what().empty()) return holder->Computing(now);
  return now - std::max(parts_.progress.last_step_at(), parts_.cuts->last().at) < kStepUnexplained;
}

// Returns the worker that holds the oldest step that is not done. A cut may depend on that step.
// Null if no worker holds it.
const Worker* RunView::HolderOfOldestStep() const {
  for (const auto& [key, worker] : parts_.membership->workers()) {
    if (parts_.scheduler->steps().Holds(key, parts_.scheduler->steps().base())) return worker.get();
  }
  return nullptr;
}

std::string RunView::OldestStep() const {
  const Worker* const holder = HolderOfOldestStep();
  if (holder == nullptr) return "";
  const std::string& what = holder->waiting.what();
  return absl::StrCat("step ", parts_.scheduler->steps().base(), " is with worker ", holder->index,
                      what.empty() ? "" : ", which is ", what);
}

absl::StatusOr<OperatorRequests::Wanted> RunView::WantedNow() const {
  if (parts_.shutdown->over())
    return absl::UnavailableError("no checkpoint: the coordinator stops");
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  if (!parts_.shutdown->working() && last.has_value())  // the final one
    return OperatorRequests::Wanted{last->manifest.timeline, last->manifest.cut_step};
  if (!parts_.scheduler->open() || parts_.drain->NothingToKeep()) {
    const std::vector<std::string> waiting = Waiting();
    return absl::UnavailableError(absl::StrCat("no steps are being done now",
                                               waiting.empty() ? "" : ", waiting for ",
                                               absl::StrJoin(waiting, "; ")));
  }
  return OperatorRequests::Wanted{parts_.opened->timeline, parts_.scheduler->KeepableBelow()};
}

}  // namespace shoal
