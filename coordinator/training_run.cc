#include "coordinator/training_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/json/json_errors.h"
#include "common/log/logging.h"
#include "common/rpc/evaluate_method.h"

namespace shoal {
namespace {

constexpr Time kTickPeriod = std::chrono::milliseconds(250);
// A wait longer than this is logged, and logged again.
constexpr Time kLogWaitingAfter = std::chrono::seconds(3);
constexpr Time kLogWaitingEvery = std::chrono::seconds(10);

// The parser has checked the names of the metrics.
std::vector<std::shared_ptr<const Metric>> MetricsOf(const Job& job) {
  auto metrics = MakeMetrics(job.metrics, job.weighted_metrics);
  SHOAL_CHECK(metrics.ok(), metrics.status().ToString());
  return *std::move(metrics);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Create(Options options) {
  SHOAL_RETURN_IF_ERROR(ResolveStrategy(options.listed_workers.size(), &options.job));
  std::unique_ptr<TrainingRun> run(new TrainingRun(std::move(options)));
  SHOAL_RETURN_IF_ERROR(run->Prepare());
  return run;
}

TrainingRun::TrainingRun(Options options)
    : options_(std::move(options)),
      job_text_(options_.job.ResolvedText()),
      fingerprint_(options_.job.Fingerprint()),
      paths_{options_.run_dir},
      store_(paths_.checkpoints(), options_.files),
      started_(options_.loop->Now()),
      progress_(MetricsOf(options_.job)) {}

TrainingRun::~TrainingRun() = default;

absl::Status TrainingRun::Prepare() {
  const Job& job = options_.job;
  absl::StatusOr<KerasModel> model = ParseKerasModel(job.model_json);
  if (!model.ok()) {
    return WithSource(job.model_path.empty() ? "the job's model" : job.model_path, model.status());
  }
  model_ = *std::move(model);
  const std::vector<Variable>& variables = model_.graph.variables();
  SHOAL_ASSIGN_OR_RETURN(optimizer_, MakePsOptimizer(job));
  SHOAL_ASSIGN_OR_RETURN(job_optimizer_, MakeOptimizer(job.optimizer));
  const std::vector<std::string>& slots = optimizer_->slot_names();
  if (const absl::Status sound = CheckVariables(variables, slots); !sound.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", model_.name, ": ", std::string(sound.message())));
  }
  SHOAL_ASSIGN_OR_RETURN(
      ShardMap shard_map,
      ShardMapOf(job, variables, static_cast<int>(options_.ps_addresses.size())));
  shard_map_ = std::make_unique<ShardMap>(std::move(shard_map));
  layout_ = LayOutCheckpoint(variables, slots);
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
  manifest.job_name = options_.job.name;
  manifest.job_fingerprint = fingerprint_;
  manifest.slots = optimizer_->slot_names();
  manifest.shard_map = shard_map_->ToText();
  return manifest;
}

std::map<std::string, std::string> TrainingRun::TextsOfJob() const {
  return {{kJobName, job_text_}, {kModelName, options_.job.model_json}};
}

void TrainingRun::Start() {
  history_->ReadEarlier();
  fleet_->Start();
  Tick();
}

void TrainingRun::Stop() {
  ending_->OnStop();
  closing_->Stop();
  Advance();
}

absl::StatusOr<StreamCallbacks> TrainingRun::Accept(const std::string& method,
                                                    std::unique_ptr<Stream> stream) {
  if (method == kWorkMethod) return membership_->Accept(std::move(stream));
  if (method == kEvaluateMethod) return evaluator_->Accept(std::move(stream));
  if (ClusterService::Serves(method)) return requests_->Accept(method, std::move(stream));
  return absl::UnimplementedError("a coordinator has no method " + method);
}

// --- The timeline ---

void TrainingRun::OnStored(const std::vector<StoredCheckpoint>& newest_first) {
  checkpointer_->SetStored(newest_first);
  stored_ = newest_first;
  stored_at_ = options_.loop->Now();
  if (plan_.has_value()) return;
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
  plan_ = BatchPlanOf(options_.job, counts.training).steps();
  if (options_.job.strategy.in_rounds())
    rounds_.emplace(*plan_, options_.job.strategy.gradients_per_update);
  test_examples_ = counts.test;
  counted_by_ = counted_by;
}

void TrainingRun::OnTimelineOpened(const PsFleet::Opened& opened) {
  opened_ = opened;
  nan_steps_ = 0;
  const bool went_back = ++counters_.timelines_opened > 1 && !opened.adopted;
  // Another coordinator may have led the run, and written the file, until the ps were claimed.
  if (counters_.timelines_opened == 1) history_->ReadEarlier();
  const std::string from = opened.loaded.has_value()
                               ? absl::StrCat(opened.base == 0 ? "begun with " : "resumed from ",
                                              opened.checkpoint, " at step ", opened.base)
                               : "there is no checkpoint: the run begins at step 0";
  if (opened.loaded.has_value()) checkpointer_->SetLast(*opened.loaded);
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
  for (Worker* worker : membership_->Ready()) Announce(*worker);
  if (worker_came_) {
    BeginTraining();
  } else {
    LayOutSteps();
  }
  evaluator_->Begin();
  closing_->OnTimelineOpened();
}

void TrainingRun::Announce(Worker& worker) {
  worker.lost_timeline = false;
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(opened_->timeline);
  worker.Send(order);
}

void TrainingRun::OnTimelineOver(const std::string& why) {
  handout_->Close();
  counted_.clear();
  opened_.reset();
  checkpointer_->GiveUp(why);
  requests_->RefuseCheckpoints(why);
  closing_->OnTimelineOver(why);
}

void TrainingRun::LayOutSteps() {
  std::optional<uint64_t> whole_below;
  if (options_.job.strategy.in_rounds() && !rounds_.has_value()) {
    whole_below = opened_->adopted ? fleet_->HighestUpdates() : opened_->base;
  }
  handout_->Open({.timeline = opened_->timeline,
                  .total_steps = plan_.has_value() ? plan_->total_steps()
                                                   : std::numeric_limits<uint64_t>::max(),
                  .base = opened_->base,
                  .done_after_base = opened_->done_after_base,
                  .rule = MakeLeaseRule(options_.job.strategy, rounds_),
                  .rounds = rounds_,
                  .whole_below = whole_below});
  cuts_.emplace(CutPlan::Options{.timeline = opened_->timeline,
                                 .when = options_.job.checkpoint,
                                 .plan = worker_came_ ? plan_ : std::nullopt,
                                 .rounds = rounds_,
                                 .evaluates = worker_came_ && test_examples_ > 0,
                                 .awaits_results = worker_came_ && awaits_results(),
                                 .base = opened_->base,
                                 .last = LastCut(),
                                 .now = options_.loop->Now()});
}

// The schedule continues from the newest checkpoint. So it works even if coordinators or ps live
// for less than the time between two checkpoints.
CutPlan::Last TrainingRun::LastCut() const {
  if (cuts_.has_value() && cuts_->timeline() == opened_->timeline) return cuts_->last();
  const Time now = options_.loop->Now();
  if (opened_->loaded.has_value()) return {.step = opened_->base, .at = now - opened_->loaded->age};
  if (!opened_->adopted) return {.at = now};
  if (const StoredCheckpoint* stored = NewestStored(); stored != nullptr)
    return {.step = stored->manifest.cut_step, .at = stored_at_ - stored->age};
  // The age of the timeline is unknown: a checkpoint is due now.
  return {.at = now - FromSeconds(options_.job.checkpoint.every_seconds)};
}

const StoredCheckpoint* TrainingRun::NewestStored() const {
  const auto found = std::find_if(
      stored_.begin(), stored_.end(),
      [this](const StoredCheckpoint& each) { return each.manifest.cut_step <= opened_->base; });
  return found == stored_.end() ? nullptr : &*found;
}

void TrainingRun::TakeApplied() {
  if (!opened_->adopted) return;  // no worker can have applied a step
  PsFleet::Applied applied = fleet_->AppliedEverywhere();
  opened_->base = applied.base;
  opened_->done_after_base = std::move(applied.after_base);
  LayOutSteps();
}

absl::Status TrainingRun::CheckPlan() const {
  SHOAL_RETURN_IF_ERROR(CheckRounds(options_.job, plan_->steps_per_epoch()));
  // A round that is reported in part continues. The ps apply whole rounds only, except if the
  // timeline was loaded from a checkpoint of a shorter job, maybe by an earlier coordinator.
  const bool by_rounds = rounds_.has_value();
  const uint64_t applied = by_rounds && opened_->adopted ? fleet_->HighestUpdates() : opened_->base;
  const uint64_t base = std::max(opened_->base, applied);
  const std::string there =
      opened_->checkpoint.empty() ? "the timeline of the ps" : opened_->checkpoint;
  if (base > plan_->total_steps()) {
    return absl::FailedPreconditionError(absl::StrCat(
        there, " has the first ", base, " steps, and the job has only ", plan_->total_steps(),
        " now; raise $.epochs or $.steps, or choose another --run_dir"));
  }
  if (!by_rounds || rounds_->StartsAt(applied)) return absl::OkStatus();
  const Round round = rounds_->Of(applied);
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
    const bool found = opened_->adopted && absl::IsFailedPrecondition(can_be_done);
    if (found) return fleet_->Restore(std::string(can_be_done.message()));
    return ending_->Over(can_be_done);
  }
  fleet_->TellExamples();  // before the first lease, so that the ps know it before a push
  handout_->Begin();
  const StoredCheckpoint* const newest = NewestBelowBase();
  history_->Begin(*plan_, opened_->base, newest == nullptr ? nullptr : &newest->manifest);
  // Includes the steps of workers that are draining.
  for (const auto& [key, worker] : membership_->workers()) handout_->Hold(*worker);
  LogInfo(absl::StrCat("training: ", plan_->examples(), " examples, ", plan_->total_steps(),
                       " steps in ", plan_->epochs(), " epochs, from step ",
                       handout_->steps().base(), " on"));
  Advance();
}

// After adopting a timeline the coordinator has no checkpoint of its own yet.
const StoredCheckpoint* TrainingRun::NewestBelowBase() const {
  const std::optional<StoredCheckpoint>& last = checkpointer_->last();  // or loaded
  if (last.has_value() && last->manifest.cut_step <= opened_->base) return &*last;
  return opened_->adopted ? NewestStored() : nullptr;
}

void TrainingRun::OnPsReply(int ps, const proto::ControlReply& reply) {
  switch (reply.kind_case()) {
    case proto::ControlReply::kDeparting:
      closing_->OnPsDeparting(ps);
      return Advance();
    case proto::ControlReply::kStopping:
      return ending_->OnPsStopping(ps);
    default:
      return checkpointer_->OnReply(ps, reply);
  }
}

// Section 8: a successor finds the final checkpoint and does the rest.
void TrainingRun::OnJobFinished(const RunEnd& end) {
  if (!ending_->working()) return;
  LogInfo("the job is finished already: " + end.last.directory);
  checkpointer_->SetLast(end.last);
  // For an evaluation that was in progress when the former coordinator was killed.
  if (plan_.has_value()) history_->Begin(*plan_, end.last.manifest.cut_step, nullptr);
  SaveModel(end.result, /*found=*/true);
}

// --- Progress ---

void TrainingRun::Advance() {
  if (!Plan()) return;
  for (Worker* worker : membership_->Ready()) handout_->Offer(*worker);
  handout_->ServeLine();
}

void TrainingRun::CountRounds() {
  if (training() && rounds_.has_value())
    progress_.CountBelow(rounds_->StartAt(handout_->steps().base()));
}

bool TrainingRun::Plan() {
  if (!handout_->open() || !ending_->working()) return false;
  CountRounds();
  if (training()) {
    history_->CloseUpTo(handout_->steps().base());
    evaluator_->HandOut();
  }
  PlanCut();
  if (!training() || !ending_->working()) return false;
  uint64_t limit = cuts_->mandatory();
  if (!checkpointer_->idle() && !checkpointer_->accepted())
    limit = std::min(limit, checkpointer_->step());
  if (closing_->closing()) {
    // Leases no new step, but all steps that the last checkpoints need, also if a worker hands them
    // back.
    const uint64_t needed = checkpointer_->idle() ? 0 : checkpointer_->step();
    limit = std::min(limit, std::max(needed, handout_->steps().first_unleased()));
    if (handout_->taking_back()) limit = 0;
  }
  handout_->steps().set_limit(limit);
  return true;
}

void TrainingRun::Tick() {
  tick_.Set(kTickPeriod, [this] { Tick(); });
  const Time now = options_.loop->Now();
  // A stop waits with its own timeout, and no other worker may begin those steps then.
  handout_->DropSilent(/*patient=*/closing_->stopping());
  for (Worker* worker : membership_->Ready()) {
    if (worker->lost_timeline && opened_.has_value()) Announce(*worker);
  }
  handout_->UpdateIdleSince();
  LogWaiting(now);
  evaluator_->Tick();
  closing_->BeforePlan();
  Advance();
  closing_->AfterPlan();
}

std::string TrainingRun::NotReady() const {
  if (ending_->over()) return "the run is over";
  return closing_->stopping() ? "stopping" : "";
}

RunView TrainingRun::View() const {
  return RunView({.now = options_.loop->Now(),
                  .started = started_,
                  .job_fingerprint = fingerprint_,
                  .timeline = timeline(),
                  .awaits_results = awaits_results(),
                  .counters = counters_,
                  .job = &options_.job,
                  .paths = &paths_,
                  .chief_address = &options_.chief_address,
                  .ps_addresses = &options_.ps_addresses,
                  .optimizer = job_optimizer_.get(),
                  .plan = &plan_,
                  .cuts = &cuts_,
                  .lease = lease_.get(),
                  .fleet = fleet_.get(),
                  .membership = membership_.get(),
                  .handout = handout_.get(),
                  .progress = &progress_,
                  .history = history_.get(),
                  .evaluator = evaluator_.get(),
                  .checkpointer = checkpointer_.get(),
                  .closing = closing_.get(),
                  .ending = ending_.get(),
                  .requests = requests_.get()});
}

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
