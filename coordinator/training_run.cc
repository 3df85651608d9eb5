#include "coordinator/training_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/json/json_errors.h"
#include "common/log/logging.h"

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
      timeline_(&parts_, &wakeup_),
      reports_(&parts_, &timeline_, &wakeup_),
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
  wakeup_.Raise();
}

absl::StatusOr<StreamCallbacks> TrainingRun::Accept(const std::string& method,
                                                    std::unique_ptr<Stream> stream) {
  if (method == kWorkMethod) return parts_.membership->Accept(std::move(stream));
  if (method == kEvaluateMethod) return parts_.evaluator->Accept(std::move(stream));
  if (ClusterService::Serves(method)) return parts_.requests->Accept(method, std::move(stream));
  return absl::UnimplementedError("a coordinator has no method " + method);
}

void TrainingRun::OnPsReply(int ps, const proto::ControlReply& reply) {
  switch (reply.kind_case()) {
    case proto::ControlReply::kDeparting:
      parts_.drain->OnPsDeparting(ps);
      return wakeup_.Raise();
    case proto::ControlReply::kStopping:
      return parts_.shutdown->OnPsStopping(ps);
    default:
      return parts_.checkpointer->OnReply(ps, reply);
  }
}

void TrainingRun::KeepFailure(const absl::Status& status) {
  parts_.Fail({.status = status});
  wakeup_.Raise();
}

void TrainingRun::Tick() {
  tick_.Set(kTickPeriod, [this] { Tick(); });
  const Time now = parts_.options.loop->Now();
  // A stop waits with its own timeout, and no other worker may begin those steps then.
  parts_.scheduler->DropSilent(/*patient=*/parts_.drain->stopping());
  for (Worker* worker : parts_.membership->Ready()) {
    if (worker->lost_timeline && parts_.opened.has_value()) timeline_.Announce(*worker);
  }
  parts_.scheduler->UpdateIdleSince();
  LogWaiting(now);
  parts_.evaluator->Tick();
  reconciler_.Tick();
}

absl::Status TrainingRun::CheckReady() const {
  if (parts_.shutdown->over()) return absl::FailedPreconditionError("the run is over");
  if (parts_.drain->stopping()) return absl::FailedPreconditionError("stopping");
  return absl::OkStatus();
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
