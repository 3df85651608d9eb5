#include "coordinator/training_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/json/json_errors.h"
#include "common/log/logging.h"
#include "coordinator/outcomes.h"

namespace shoal {
namespace {

constexpr Time kTickPeriod = std::chrono::milliseconds(250);
// A wait longer than this is logged, and logged again.
constexpr Time kLogWaitingAfter = std::chrono::seconds(3);
constexpr Time kLogWaitingEvery = std::chrono::seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Create(Options options) {
  SHOAL_RETURN_IF_ERROR(ResolveStrategy(options.listed_workers.size(), &options.job));
  std::unique_ptr<TrainingRun> run(new TrainingRun(std::move(options)));
  SHOAL_RETURN_IF_ERROR(run->Prepare());
  return run;
}

TrainingRun::TrainingRun(Options options)
    : wakeup_(options.loop, [this](Wakeup::Cause cause) { reconciler_.Turn(cause); }),
      parts_(std::move(options)),
      reconciler_(&parts_, &wakeup_),
      tick_(parts_.options.loop) {}

absl::Status TrainingRun::Prepare() {
  const Job& job = parts_.options.job;
  absl::StatusOr<KerasModel> model = ParseKerasModel(job.model_json);
  if (!model.ok()) {
    return WithSource(job.model_path.empty() ? "the job's model" : job.model_path, model.status());
  }
  parts_.model = *std::move(model);
  const std::vector<Variable>& variables = parts_.model.graph.variables();
  SHOAL_ASSIGN_OR_RETURN(parts_.optimizer, MakePsOptimizer(job));
  SHOAL_ASSIGN_OR_RETURN(parts_.job_optimizer, MakeOptimizer(job.optimizer));
  const std::vector<std::string>& slots = parts_.optimizer->slot_names();
  if (const absl::Status sound = CheckVariables(variables, slots); !sound.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", parts_.model.name, ": ", std::string(sound.message())));
  }
  SHOAL_ASSIGN_OR_RETURN(
      ShardMap shard_map,
      ShardMapOf(job, variables, static_cast<int>(parts_.options.ps_addresses.size())));
  parts_.shard_map = std::make_unique<ShardMap>(std::move(shard_map));
  parts_.layout = LayOutCheckpoint(variables, slots);
  MakePs();
  MakeWorkers();
  MakeEvaluator();
  MakeCheckpoints();
  MakeEnd();
  return absl::OkStatus();
}

Manifest TrainingRun::ManifestOfJob() const {
  Manifest manifest;
  manifest.program_version = kVersion;
  manifest.job_name = parts_.options.job.name;
  manifest.job_fingerprint = parts_.fingerprint;
  manifest.slots = parts_.optimizer->slot_names();
  manifest.shard_map = parts_.shard_map->ToText();
  return manifest;
}

std::map<std::string, std::string> TrainingRun::TextsOfJob() const {
  return {{kJobName, parts_.job_text}, {kModelName, parts_.options.job.model_json}};
}

void TrainingRun::Start() {
  parts_.history->ReadEarlier();
  parts_.fleet->Start();
  Tick();
}

void TrainingRun::Stop() {
  parts_.shutdown->OnStop();
  parts_.drain->Stop();
  reconciler_.wakeup().Raise();
}

absl::StatusOr<StreamCallbacks> TrainingRun::Accept(const std::string& method,
                                                    std::unique_ptr<Stream> stream) {
  if (method == kWorkMethod) return parts_.membership->Accept(std::move(stream));
  if (method == kEvaluateMethod) return parts_.evaluator->Accept(std::move(stream));
  if (ClusterService::Serves(method)) return parts_.requests->Accept(method, std::move(stream));
  return absl::UnimplementedError("a coordinator has no method " + method);
}

// --- The timeline ---

void TrainingRun::OnStored(const std::vector<StoredCheckpoint>& newest_first) {
  parts_.checkpointer->SetStored(newest_first);
  parts_.stored = newest_first;
  parts_.stored_at = parts_.options.loop->Now();
  if (parts_.plan.has_value()) return;
  // Not every checkpoint has the counts: a coordinator that took over and met no worker may not
  // have known them.
  const auto counted = std::find_if(
      newest_first.begin(), newest_first.end(),
      [](const StoredCheckpoint& each) { return each.manifest.training_examples > 0; });
  if (counted == newest_first.end()) return;
  TakeCounts({counted->manifest.training_examples, counted->manifest.test_examples},
             counted->directory + " was made with");
}

void TrainingRun::TakeCounts(const ExampleCounts& counts, const std::string& counted_by) {
  parts_.plan = BatchPlanOf(parts_.options.job, counts.training).steps();
  if (parts_.options.job.strategy.in_rounds())
    parts_.rounds.emplace(*parts_.plan, parts_.options.job.strategy.gradients_per_update);
  parts_.test_examples = counts.test;
  parts_.counted_by = counted_by;
}

void TrainingRun::OnTimelineOpened(const PsFleet::Opened& opened) {
  parts_.opened = opened;
  parts_.nan_watch->Reset();
  const bool went_back = ++parts_.counters.timelines_opened > 1 && !opened.adopted;
  // Another coordinator may have led the run, and written the file, until the ps were claimed.
  if (parts_.counters.timelines_opened == 1) parts_.history->ReadEarlier();
  const std::string from = opened.loaded.has_value()
                               ? absl::StrCat(opened.base == 0 ? "begun with " : "resumed from ",
                                              opened.checkpoint, " at step ", opened.base)
                               : "there is no checkpoint: the run begins at step 0";
  if (opened.loaded.has_value()) parts_.checkpointer->SetLast(*opened.loaded);
  if (went_back) {
    LogWarning(from + "; steps from there on that were done are done again");
  } else if (opened.loaded.has_value()) {
    LogInfo(from);
  }
  if (!opened.adopted) {
    LogInfo("a timeline begins",
            {{"timeline", TermText(opened.timeline)},
             {"step", absl::StrCat(opened.base)},
             {"parent",
              opened.loaded.has_value() ? TermText(opened.loaded->manifest.timeline) : "seed"}});
  }
  for (Worker* worker : parts_.membership->Ready()) Announce(*worker);
  if (parts_.worker_came) {
    BeginTraining();
  } else {
    LayOutSteps();
  }
  parts_.evaluator->Begin();
  parts_.drain->OnTimelineOpened();
}

void TrainingRun::Announce(Worker& worker) {
  worker.lost_timeline = false;
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(parts_.opened->timeline);
  worker.Send(order);
}

void TrainingRun::OnTimelineOver(const std::string& why) {
  parts_.scheduler->Close();
  parts_.counted.clear();
  parts_.opened.reset();
  parts_.checkpointer->GiveUp(why);
  RecordOutcomes(&parts_);
  parts_.requests->RefuseCheckpoints(why);
  parts_.drain->OnTimelineOver(why);
}

void TrainingRun::LayOutSteps() {
  std::optional<uint64_t> whole_below;
  if (parts_.options.job.strategy.in_rounds() && !parts_.rounds.has_value()) {
    whole_below = parts_.opened->adopted ? parts_.fleet->HighestUpdates() : parts_.opened->base;
  }
  parts_.scheduler->Open({.timeline = parts_.opened->timeline,
                          .total_steps = parts_.plan.has_value()
                                             ? parts_.plan->total_steps()
                                             : std::numeric_limits<uint64_t>::max(),
                          .base = parts_.opened->base,
                          .done_after_base = parts_.opened->done_after_base,
                          .rule = MakeLeaseRule(parts_.options.job.strategy, parts_.rounds),
                          .rounds = parts_.rounds,
                          .whole_below = whole_below});
  parts_.cuts.emplace(
      CutPlan::Options{.timeline = parts_.opened->timeline,
                       .when = parts_.options.job.checkpoint,
                       .plan = parts_.worker_came ? parts_.plan : std::nullopt,
                       .rounds = parts_.rounds,
                       .evaluates = parts_.worker_came && parts_.test_examples > 0,
                       .awaits_results = parts_.worker_came && parts_.awaits_results(),
                       .base = parts_.opened->base,
                       .last = LastCut(),
                       .now = parts_.options.loop->Now()});
}

// The schedule continues from the newest checkpoint. So it works even if coordinators or ps live
// for less than the time between two checkpoints.
CutPlan::Last TrainingRun::LastCut() const {
  if (parts_.cuts.has_value() && parts_.cuts->timeline() == parts_.opened->timeline)
    return parts_.cuts->last();
  const Time now = parts_.options.loop->Now();
  if (parts_.opened->loaded.has_value())
    return {.step = parts_.opened->base, .at = now - parts_.opened->loaded->age};
  if (!parts_.opened->adopted) return {.at = now};
  if (const StoredCheckpoint* stored = NewestStored(); stored != nullptr)
    return {.step = stored->manifest.cut_step, .at = parts_.stored_at - stored->age};
  // The age of the timeline is unknown: a checkpoint is due now.
  return {.at = now - FromSeconds(parts_.options.job.checkpoint.every_seconds)};
}

const StoredCheckpoint* TrainingRun::NewestStored() const {
  const auto found = std::find_if(parts_.stored.begin(), parts_.stored.end(),
                                  [this](const StoredCheckpoint& each) {
                                    return each.manifest.cut_step <= parts_.opened->base;
                                  });
  return found == parts_.stored.end() ? nullptr : &*found;
}

void TrainingRun::TakeApplied() {
  if (!parts_.opened->adopted) return;  // no worker can have applied a step
  PsFleet::Applied applied = parts_.fleet->AppliedEverywhere();
  parts_.opened->base = applied.base;
  parts_.opened->done_after_base = std::move(applied.after_base);
  LayOutSteps();
}

absl::Status TrainingRun::CheckPlan() const {
  SHOAL_RETURN_IF_ERROR(CheckRounds(parts_.options.job, parts_.plan->steps_per_epoch()));
  // A round that is reported in part continues. The ps apply whole rounds only, except if the
  // timeline was loaded from a checkpoint of a shorter job, maybe by an earlier coordinator.
  const bool by_rounds = parts_.rounds.has_value();
  const uint64_t applied =
      by_rounds && parts_.opened->adopted ? parts_.fleet->HighestUpdates() : parts_.opened->base;
  const uint64_t base = std::max(parts_.opened->base, applied);
  const std::string there =
      parts_.opened->checkpoint.empty() ? "the timeline of the ps" : parts_.opened->checkpoint;
  if (base > parts_.plan->total_steps()) {
    return absl::FailedPreconditionError(absl::StrCat(
        there, " has the first ", base, " steps, and the job has only ", parts_.plan->total_steps(),
        " now; raise $.epochs or $.steps, or choose another --run_dir"));
  }
  if (!by_rounds || parts_.rounds->StartsAt(applied)) return absl::OkStatus();
  const Round round = parts_.rounds->Of(applied);
  return absl::FailedPreconditionError(absl::StrCat(
      there, " has the first ", applied,
      " steps, where the job ended; the job that is longer now makes one update of steps ",
      round.first, " to ", round.end() - 1,
      ", and would not come to what it comes to in one go. In rounds such a job ends "
      "for good where an update ended early: set $.steps to ",
      applied, ", or begin anew with another --run_dir"));
}

void TrainingRun::BeginTraining() {
  LayOutSteps();
  if (const absl::Status can_be_done = CheckPlan(); !can_be_done.ok()) {
    // The store may still have a checkpoint of this job.
    const bool found = parts_.opened->adopted && absl::IsFailedPrecondition(can_be_done);
    if (found) return parts_.fleet->Restore(std::string(can_be_done.message()));
    return parts_.shutdown->Over(can_be_done);
  }
  parts_.fleet->TellExamples();  // before the first lease, so that the ps know it before a push
  parts_.scheduler->Begin();
  const StoredCheckpoint* const newest = NewestBelowBase();
  parts_.history->Begin(*parts_.plan, parts_.opened->base,
                        newest == nullptr ? nullptr : &newest->manifest);
  // Includes the steps of workers that are draining.
  for (const auto& [key, worker] : parts_.membership->workers()) parts_.scheduler->Hold(*worker);
  LogInfo(absl::StrCat("training: ", parts_.plan->examples(), " examples, ",
                       parts_.plan->total_steps(), " steps in ", parts_.plan->epochs(),
                       " epochs, from step ", parts_.scheduler->steps().base(), " on"));
  reconciler_.wakeup().Raise();
}

// After adopting a timeline the coordinator has no checkpoint of its own yet.
const StoredCheckpoint* TrainingRun::NewestBelowBase() const {
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();  // or loaded
  if (last.has_value() && last->manifest.cut_step <= parts_.opened->base) return &*last;
  return parts_.opened->adopted ? NewestStored() : nullptr;
}

void TrainingRun::OnPsReply(int ps, const proto::ControlReply& reply) {
  switch (reply.kind_case()) {
    case proto::ControlReply::kDeparting:
      parts_.drain->OnPsDeparting(ps);
      return reconciler_.wakeup().Raise();
    case proto::ControlReply::kStopping:
      return parts_.shutdown->OnPsStopping(ps);
    default:
      return parts_.checkpointer->OnReply(ps, reply);
  }
}

void TrainingRun::Tick() {
  tick_.Set(kTickPeriod, [this] { Tick(); });
  const Time now = parts_.options.loop->Now();
  // A stop waits with its own timeout, and no other worker may begin those steps then.
  parts_.scheduler->DropSilent(/*patient=*/parts_.drain->stopping());
  for (Worker* worker : parts_.membership->Ready()) {
    if (worker->lost_timeline && parts_.opened.has_value()) Announce(*worker);
  }
  parts_.scheduler->UpdateIdleSince();
  LogWaiting(now);
  parts_.evaluator->Tick();
  reconciler_.Tick();
}

std::string TrainingRun::NotReady() const {
  if (parts_.shutdown->over()) return "the run is over";
  return parts_.drain->stopping() ? "stopping" : "";
}

RunView TrainingRun::View() const { return RunView(parts_, parts_.options.loop->Now()); }

// Promise 8: the run never waits in silence.
void TrainingRun::LogWaiting(Time now) {
  const std::vector<std::string> lines = View().Waiting();
  if (lines.empty()) {
    log_waiting_at_ = Time{};
  } else if (log_waiting_at_ == Time{}) {
    log_waiting_at_ = now + kLogWaitingAfter;
  } else if (now >= log_waiting_at_) {
    for (const std::string& line : lines) LogWarning("waiting for " + line);
    log_waiting_at_ = now + kLogWaitingEvery;
  }
}

}  // namespace shoal
