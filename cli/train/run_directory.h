#pragma once

#include <sys/file.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/manifest.h"
#include "common/job/job.h"
#include "common/run/run_paths.h"

namespace shoal {

// The directory of one run of a job (RunPaths). One `shoal train` at a time holds it. A run
// continues only with the same job, except that the job may train longer. Until Prepare, nothing is
// left behind in the directory. Not thread-safe.
class RunDirectory {
 public:
  // Creates the directory if necessary and locks it until destruction. If it was created, the
  // destructor removes it while it is empty. Returns an error if another process holds it, if it is
  // not writable, or if the path is not UTF-8. `lock` is flock(2).
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(
      const std::string& path, const std::function<int(int, int)>& lock = flock);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  enum class State {
    kFresh,     // no checkpoint yet
    kResumed,   // continues from a checkpoint
    kFinished,  // nothing left to do
  };
  struct Decision {
    State state = State::kFresh;
    uint64_t step = 0;         // of the checkpoint: all steps below it are done
    uint64_t epochs_done = 0;  // whole epochs in it
    uint64_t total_steps = 0;
    // Set if the run is finished by early stopping: after this epoch, whatever the job's length is
    // now.
    std::optional<uint64_t> ended_after;
    std::string checkpoint;             // its directory
    std::optional<Job> job_there;       // the checkpoint's job, if readable
    std::vector<std::string> problems;  // of checkpoints, such as skipped ones; a line each
  };
  // Returns what starting `job` here means. kFailedPrecondition: the directory is another job's
  // (the message lists the fields that differ), the checkpoint has more than the whole job, or a
  // training from step 0 would replace a trained model. kDataLoss: checkpoints exist, but none is
  // readable; or there is a trained model, and the files that tell whether the run has ended cannot
  // be read. Reads the whole newest checkpoint.
  absl::StatusOr<Decision> Decide(const Job& job) const;

  // Resolves the fields of the job that depend on the number of workers (DependsOnWorkerCount). A
  // run keeps its first values: takes those of the run if it has some, else computes them for
  // `workers`. kInvalidArgument comes from ResolveStrategy.
  absl::Status ResolveStrategy(uint64_t workers, Job* job) const;

  // Writes job.json and makes logs/.
  absl::Status Prepare(const Job& job);

  const RunPaths& paths() const { return paths_; }  // absolute
  // Returns why the directory is not locked, as a sentence for people: the file system has no
  // locks. Empty if it is locked.
  const std::string& lock_problem() const { return lock_problem_; }

 private:
  struct Created {
    bool directory = false;
    bool lock = false;
  };
  RunDirectory(std::string path, int lock, Created created)
      : paths_{std::move(path)}, lock_(lock), created_(created) {}
  absl::Status CheckSameJob(const Job& job) const;
  // Returns whether the run ends with `newest`. Sets `ended_after` if callbacks ended it early.
  // kDataLoss: the files that decide it cannot be read; names them.
  absl::StatusOr<bool> IsOver(const Job& job, const StoredCheckpoint& newest,
                              Decision* decision) const;

  const RunPaths paths_;
  const int lock_;
  std::string lock_problem_;
  Created created_;  // by this process; the destructor removes these
};

}  // namespace shoal
