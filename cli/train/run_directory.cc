#include "cli/train/run_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text/utf8.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/files/durable_file.h"
#include "common/job/job_strategy.h"
#include "common/json/json_text.h"
#include "common/run/checkpoint_job.h"
#include "common/run/new_run.h"
#include "common/run/run_verdict.h"
#include "worker/job/job_names.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// Returns whether the file at `path` is the open file `fd`.
bool IsFileAt(int fd, const std::string& path) {
  struct stat open = {}, there = {};
  return fstat(fd, &open) == 0 && stat(path.c_str(), &there) == 0 && open.st_dev == there.st_dev &&
         open.st_ino == there.st_ino;
}

bool SameCallbacks(const Job& a, const Job& b) {
  return std::equal(a.callbacks.begin(), a.callbacks.end(), b.callbacks.begin(), b.callbacks.end(),
                    [](const Callback& x, const Callback& y) { return x.config == y.config; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(
    const std::string& path, const std::function<int(int, int)>& lock_file) {
  const std::string absolute = AbsolutePath(path);
  SHOAL_RETURN_IF_ERROR(CheckUtf8Path(absolute));
  const std::string lock_path = RunPaths{absolute}.lock();
  for (;;) {
    const Created created{.directory = !fs::exists(absolute), .lock = !fs::exists(lock_path)};
    SHOAL_RETURN_IF_ERROR(MakeRunDirectory(absolute));
    const int lock =
        open(lock_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, NewFileMode(lock_path));
    if (lock < 0) {
      const int error = errno;
      // The process that created the directory may have removed it.
      if (error == ENOENT && !fs::exists(absolute)) continue;
      return absl::FailedPreconditionError(lock_path +
                                           ": cannot be written: " + std::strerror(error));
    }
    if (lock_file(lock, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error == EWOULDBLOCK) {
        close(lock);
        return absl::FailedPreconditionError(absolute +
                                             ": another `shoal train` uses this run directory; "
                                             "wait for it, or choose another --run_dir");
      }
      // For example NFS without a lock server, and some FUSE file systems. There the lease of the
      // run keeps a second coordinator out.
      std::unique_ptr<RunDirectory> run(new RunDirectory(absolute, lock, created));
      run->lock_problem_ =
          absl::StrCat(lock_path, ": cannot be locked: ", std::strerror(error),
                       "; training continues. The lease of the run, ", run->paths().lease(),
                       ", still keeps a second coordinator out; start one `shoal train` at a time");
      return run;
    }
    // The last holder may have removed the file after this process opened it. A lock on a removed
    // file excludes no other process.
    if (IsFileAt(lock, lock_path))
      return std::unique_ptr<RunDirectory>(new RunDirectory(absolute, lock, created));
    close(lock);
  }
}

RunDirectory::~RunDirectory() {
  if (created_.lock) unlink(paths_.lock().c_str());
  if (created_.directory) rmdir(paths_.directory.c_str());  // fails if it is not empty
  close(lock_);
}

absl::Status RunDirectory::CheckSameJob(const Job& job) const {
  if (!fs::exists(paths_.job())) return absl::OkStatus();
  // The job of a run that has saved nothing yet may be changed.
  const auto stored = CheckpointStore(paths_.checkpoints()).List(nullptr);
  if (stored.ok() && stored->empty() && !fs::exists(paths_.history())) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(const std::string there, ReadSmallFile(paths_.job(), kMaxJsonBytes));
  Job named_alike = job;
  if (const absl::StatusOr<Job> run = ParseResolvedJob(there, paths_.job()); run.ok())
    MatchColumnNames(*run, &named_alike);
  const std::vector<std::string> differences =
      DescribeDifferences(there, named_alike.ResolvedText());
  if (differences.empty()) return absl::OkStatus();
  std::string message = paths_.directory + ": this run directory belongs to another job:";
  for (const std::string& difference : differences) message += "\n  " + difference;
  return absl::FailedPreconditionError(
      message +
      "\nChoose another --run_dir for the changed job, or undo the "
      "change.");
}

absl::Status RunDirectory::ResolveStrategy(uint64_t workers, Job* job) const {
  const auto stored = CheckpointStore(paths_.checkpoints()).List(nullptr);
  if (stored.ok()) TakeResolvedFrom(*stored, job);
  return shoal::ResolveStrategy(workers, job);
}

absl::StatusOr<RunDirectory::Decision> RunDirectory::Decide(const Job& job) const {
  SHOAL_RETURN_IF_ERROR(CheckSameJob(job));
  Decision decision;
  SHOAL_ASSIGN_OR_RETURN(
      const std::optional<StoredCheckpoint> newest,
      CheckpointStore(paths_.checkpoints()).NewestVerified({}, &decision.problems));
  if (!newest.has_value()) {
    if (!decision.problems.empty()) {
      return absl::DataLossError(
          absl::StrCat("no checkpoint in ", paths_.checkpoints(), " can be read:\n  ",
                       absl::StrJoin(decision.problems, "\n  "),
                       "\nRestore one from a backup, or start over with another --run_dir."));
    }
    SHOAL_RETURN_IF_ERROR(CheckReplacesNothing(paths_, RealFileSystem()));
    return decision;
  }
  const Manifest& manifest = newest->manifest;
  decision.step = manifest.cut_step;
  decision.epochs_done = manifest.epoch + (manifest.epoch_done() ? 1 : 0);
  decision.total_steps = manifest.total_steps;
  decision.checkpoint = newest->directory;
  if (absl::StatusOr<Job> run = JobOf(*newest); run.ok()) decision.job_there = *std::move(run);
  if (job.steps > 0 ? decision.step > job.steps : manifest.epoch >= job.epochs) {
    return absl::FailedPreconditionError(absl::StrCat(
        decision.checkpoint, " has the first ", decision.step, " steps, into epoch ",
        manifest.epoch + 1, ", and the job has only ", job.steps > 0 ? job.steps : job.epochs,
        job.steps > 0     ? " steps"
        : job.epochs == 1 ? " epoch"
                          : " epochs",
        " now; raise $.", job.steps > 0 ? "steps" : "epochs", ", or choose another --run_dir"));
  }
  // A coordinator may have been stopped between the last checkpoint and the writing of the model.
  decision.state = State::kResumed;
  if (!HasModel(paths_, RealFileSystem())) return decision;
  SHOAL_ASSIGN_OR_RETURN(const bool over, IsOver(job, *newest, &decision));
  if (over) decision.state = State::kFinished;
  return decision;
}

// A job that must now train longer continues, unless its callbacks, unchanged since then, have
// ended the run.
absl::StatusOr<bool> RunDirectory::IsOver(const Job& job, const StoredCheckpoint& newest,
                                          Decision* decision) const {
  StoredCheckpoint of_now = newest;
  if (newest.manifest.job_fingerprint != job.Fingerprint()) {
    const absl::StatusOr<Job> then = JobOf(newest);
    if (!then.ok() || !SameCallbacks(job, *then)) return false;
    of_now.manifest.total_steps = 0;  // its new length in steps is not known here
  }
  const auto end = ReadEndOfRun(job.callbacks, paths_, of_now, RealFileSystem());
  if (!end.ok()) {
    return absl::DataLossError(absl::StrCat(
        "cannot tell whether the training in ", paths_.directory,
        " has ended: ", std::string(end.status().message()),
        "\nCorrect the file, or restore it from a backup; or choose another --run_dir."));
  }
  if (!end->has_value()) return false;
  decision->ended_after = (*end)->ended_after;
  return true;
}

absl::Status RunDirectory::Prepare(const Job& job) {
  created_ = {};
  SHOAL_RETURN_IF_ERROR(MakeDirectories(paths_.logs()));
  return ReplaceFile(paths_.job(), job.ResolvedText());
}

}  // namespace shoal
