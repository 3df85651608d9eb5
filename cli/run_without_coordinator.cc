#include "cli/run_without_coordinator.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/shell_word.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/files/durable_file.h"
#include "common/job/job.h"
#include "common/json/json_text.h"
#include "common/rpc/event_loop.h"
#include "common/run/checkpoint_job.h"
#include "common/run/history.h"
#include "common/run/new_run.h"
#include "common/run/run_paths.h"
#include "common/run/run_verdict.h"

namespace shoal {
namespace {

constexpr size_t kMostEpochs = 100;  // as a coordinator tells

std::vector<StoredCheckpoint> CheckpointsOf(const RunPaths& run) {
  return CheckpointStore(run.checkpoints()).List(nullptr).value_or(std::vector<StoredCheckpoint>());
}

// `shoal train` was told to train longer than the job of the newest checkpoint, and has not come to
// another one.
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
  const size_t shown = std::min(epochs.size(), kMostEpochs);
  status->mutable_history()->Add(epochs.end() - static_cast<ptrdiff_t>(shown), epochs.end());
  status->set_loss(epochs.back().loss());
  *status->mutable_metrics() = epochs.back().metrics();
}

}  // namespace

std::optional<proto::StatusReply> ReadFinishedRun(const std::string& run_dir) {
  const RunPaths run{AbsolutePath(run_dir)};
  const std::vector<StoredCheckpoint> stored = CheckpointsOf(run);
  if (stored.empty() || !HoldsModel(run, RealFileSystem())) return std::nullopt;
  const StoredCheckpoint& newest = stored.front();
  const absl::StatusOr<Job> job = JobOf(newest);
  if (!job.ok() || IsToTrainLonger(run, *job)) return std::nullopt;
  const absl::StatusOr<RunVerdict> verdict = ReadRunVerdict(job->callbacks, run, RealFileSystem());
  if (!verdict.ok() || !EndOfRun(job->callbacks, *verdict, newest).has_value()) return std::nullopt;
  const Manifest& manifest = newest.manifest;
  proto::StatusReply status;
  status.set_version(manifest.program_version);
  status.set_job_name(manifest.job_name);
  status.set_job_fingerprint(manifest.job_fingerprint);
  status.set_phase("finished");
  status.set_timeline(manifest.timeline);
  status.set_base_step(manifest.cut_step);
  status.set_steps_done(manifest.cut_step);
  status.set_total_steps(manifest.total_steps);
  status.set_epoch(manifest.epoch);
  status.set_epochs(job->epochs > 0 ? job->epochs : manifest.epoch + 1);
  status.set_run_dir(run.directory);
  FillHistory(ReadHistory(run.history()).epochs, &status);
  FillCheckpoint(newest, status.mutable_last_checkpoint());
  FillVerdict(*verdict, &status);
  return status;
}

std::string DescribeRunWithoutCoordinator(const std::string& run_dir) {
  const RunPaths run{AbsolutePath(run_dir)};
  const std::string directory = ShellWord(run_dir);
  if (ReadFinishedRun(run_dir).has_value())
    return absl::StrCat("its training is finished: shoal status ", directory);
  const std::vector<StoredCheckpoint> stored = CheckpointsOf(run);
  if (stored.empty())
    return absl::StrCat("what a job that is over has left: shoal checkpoint list ", directory);
  const Manifest& newest = stored.front().manifest;
  const std::string total = newest.total_steps > 0 ? absl::StrCat(" of ", newest.total_steps) : "";
  return absl::StrCat(
      "its newest checkpoint has the first ", newest.cut_step, total, " steps; to go on from it: ",
      RealFileSystem()->Exists(run.job())
          ? absl::StrCat("shoal train ", ShellWord(run_dir + "/job.json"), " --run_dir ", directory)
          : absl::StrCat("start its coordinator again with --run_dir=", directory));
}

}  // namespace shoal
