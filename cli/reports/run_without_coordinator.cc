#include "cli/reports/run_without_coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/display/resume_advice.h"
#include "common/base/status_macros.h"
#include "common/base/text/shell_word.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/daemon/process/exit_code.h"
#include "common/files/durable_file.h"
#include "common/job/job.h"
#include "common/json/json_text.h"
#include "common/rpc/event_loop.h"
#include "common/run/checkpoint_job.h"
#include "common/run/history.h"
#include "common/run/new_run.h"
#include "common/run/run_outcome.h"
#include "common/run/run_paths.h"
#include "common/run/run_verdict.h"

namespace shoal {
namespace {

constexpr size_t kMaxEpochs = 100;  // as in a coordinator's status

std::vector<StoredCheckpoint> CheckpointsOf(const RunPaths& run) {
  return CheckpointStore(run.checkpoints()).List(nullptr).value_or(std::vector<StoredCheckpoint>());
}

// Returns true if `shoal train` was told to train longer than the newest checkpoint's job, and no
// newer checkpoint exists yet.
bool IsToTrainLonger(const RunPaths& run, const Job& job) {
  const absl::StatusOr<std::string> text = ReadSmallFile(run.job(), kMaxJsonBytes);
  if (!text.ok()) return false;
  const absl::StatusOr<Job> now = ParseResolvedJob(*text, run.job());
  return now.ok() && (now->epochs != job.epochs || now->steps != job.steps);
}

void FillCheckpoint(const StoredCheckpoint& newest, proto::CheckpointStatus* status) {
  status->set_directory(newest.directory);
  status->set_step(newest.manifest.cut_step);
  status->set_age_seconds(ToSeconds(newest.age));
  status->set_size_bytes(newest.size_bytes());
  status->set_not_finite(newest.manifest.not_finite);
}

void FillHistory(const std::vector<proto::EpochResult>& epochs, proto::StatusReply* status) {
  if (epochs.empty()) return;
  const size_t shown = std::min(epochs.size(), kMaxEpochs);
  status->mutable_history()->Add(epochs.end() - static_cast<ptrdiff_t>(shown), epochs.end());
  status->set_loss(epochs.back().loss());
  *status->mutable_metrics() = epochs.back().metrics();
}

void FillProgress(const StoredCheckpoint& newest, proto::StatusReply* status) {
  const Manifest& manifest = newest.manifest;
  status->set_version(manifest.program_version);
  status->set_job_name(manifest.job_name);
  status->set_job_fingerprint(manifest.job_fingerprint);
  status->set_timeline(manifest.timeline);
  status->set_base_step(manifest.cut_step);
  status->set_steps_done(manifest.cut_step);
  status->set_total_steps(manifest.total_steps);
  status->set_epoch(manifest.epoch);
  FillCheckpoint(newest, status->mutable_last_checkpoint());
}

// Returns the outcome of the run if it failed.
std::optional<RunOutcome> FailureOf(const RunPaths& run) {
  std::optional<RunOutcome> outcome = ReadRunOutcome(run);
  if (!outcome.has_value() || outcome->exit_code == kExitDone || outcome->exit_code == kExitDrained)
    return std::nullopt;
  return outcome;
}

struct FinishedRun {
  StoredCheckpoint newest;
  Job job;
};
// Returns the run if its training is over and has left its model. An error names the file.
absl::StatusOr<std::optional<FinishedRun>> FinishedRunOf(const RunPaths& run) {
  if (!HasModel(run, RealFileSystem())) return std::nullopt;
  SHOAL_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> stored,
                         CheckpointStore(run.checkpoints()).List(nullptr));
  if (stored.empty()) return std::nullopt;
  SHOAL_ASSIGN_OR_RETURN(Job job, JobOf(stored.front()));
  if (IsToTrainLonger(run, job)) return std::nullopt;
  SHOAL_ASSIGN_OR_RETURN(const std::optional<RunEnd> end,
                         ReadEndOfRun(job.callbacks, run, stored.front(), RealFileSystem()));
  if (!end.has_value()) return std::nullopt;
  return FinishedRun{stored.front(), std::move(job)};
}

}  // namespace

std::optional<proto::StatusReply> ReadFailedRun(const std::string& run_dir) {
  const RunPaths run{AbsolutePath(run_dir)};
  const std::optional<RunOutcome> failure = FailureOf(run);
  if (!failure.has_value()) return std::nullopt;
  proto::StatusReply status;
  status.set_version(kVersion);
  status.set_job_name(run.directory.substr(run.directory.rfind('/') + 1));
  if (const std::vector<StoredCheckpoint> stored = CheckpointsOf(run); !stored.empty()) {
    FillProgress(stored.front(), &status);
    if (const absl::StatusOr<Job> job = JobOf(stored.front()); job.ok())
      status.set_epochs(job->epochs);
  }
  status.set_phase("failed");
  status.set_error(failure->cause);
  status.set_exit_code(static_cast<uint32_t>(failure->exit_code));
  status.set_run_dir(run.directory);
  FillHistory(ReadHistory(run.history()).value_or(History()).epochs, &status);
  return status;
}

absl::StatusOr<std::optional<proto::StatusReply>> ReadFinishedRun(const std::string& run_dir) {
  const RunPaths run{AbsolutePath(run_dir)};
  const absl::StatusOr<std::optional<FinishedRun>> finished = FinishedRunOf(run);
  if (!finished.ok()) {
    return absl::DataLossError(
        absl::StrCat("cannot tell whether the training in ", run.directory,
                     " has ended: ", std::string(finished.status().message()),
                     "\nCorrect the file, or restore it from a backup."));
  }
  if (!finished->has_value()) return std::nullopt;
  const Job& job = (*finished)->job;
  const Manifest& manifest = (*finished)->newest.manifest;
  proto::StatusReply status;
  FillProgress((*finished)->newest, &status);
  status.set_phase("finished");
  status.set_epochs(job.epochs > 0 ? job.epochs : manifest.epoch + 1);
  status.set_run_dir(run.directory);
  FillHistory(ReadHistory(run.history()).value_or(History()).epochs, &status);
  const absl::StatusOr<RunVerdict> verdict = ReadRunVerdict(job.callbacks, run, RealFileSystem());
  const absl::Status& unread = verdict.ok() ? verdict->unread_evaluations : verdict.status();
  if (verdict.ok()) FillVerdict(*verdict, &status);
  if (!unread.ok()) {
    status.set_error(
        absl::StrCat("the best checkpoint is unknown: ", std::string(unread.message())));
  }
  return status;
}

std::string CommandToResume(const std::string& run_dir) {
  const std::string directory = ShellWord(run_dir);
  const RunPaths run{AbsolutePath(run_dir)};
  return RealFileSystem()->Exists(run.job())
             ? absl::StrCat("shoal train ", ShellWord(run_dir + "/job.json"), " --run_dir ",
                            directory, RealFileSystem()->Exists(run.tls()) ? " --tls" : "")
             : absl::StrCat("start its coordinator again with --run_dir=", directory);
}

std::string DescribeRunWithoutCoordinator(const std::string& run_dir) {
  const RunPaths run{AbsolutePath(run_dir)};
  const std::string directory = ShellWord(run_dir);
  if (const std::optional<RunOutcome> failure = FailureOf(run)) {
    return absl::StrCat("It failed with exit code ", failure->exit_code, ": ", failure->cause,
                        "; to see its progress: shoal status ", directory);
  }
  const auto finished = ReadFinishedRun(run_dir);
  if (!finished.ok()) return std::string(finished.status().message());
  if (finished->has_value())
    return absl::StrCat("Its training is finished: shoal status ", directory);
  const std::vector<StoredCheckpoint> stored = CheckpointsOf(run);
  if (stored.empty())
    return absl::StrCat("To see what an ended job has left: shoal checkpoint list ", directory);
  const Manifest& newest = stored.front().manifest;
  const SavedSteps saved = {.checkpoint = newest.cut_step, .total = newest.total_steps};
  return absl::StrCat(DescribeSavedSteps(saved), "\n",
                      AdviseToResume(saved, CommandToResume(run_dir)));
}

}  // namespace shoal
