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

// The directory of one run of a job (RunPaths), held by one `shoal train` at a time; a run is only
// ever continued with the same job, which may train longer then. Until Prepare nothing is written
// there that stays. Not thread-safe.
class RunDirectory {
 public:
  // Makes the directory where there is none, which goes again while it is empty, and locks it until
  // destruction; an error when another process has it, it cannot be written, or the path is not
  // UTF-8. `lock` is flock(2).
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(
      const std::string& path, const std::function<int(int, int)>& lock = flock);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  enum class State {
    kFresh,     // no checkpoint yet
    kResumed,   // goes on from a checkpoint
    kFinished,  // nothing left to do
  };
  struct Decision {
    State state = State::kFresh;
    uint64_t step = 0;         // of the checkpoint: all steps below it are done
    uint64_t epochs_done = 0;  // whole epochs in it
    uint64_t total_steps = 0;
    // Finished: by early stopping, after this epoch, whatever the job's length is now.
    std::optional<uint64_t> ended_after;
    std::string checkpoint;             // its directory
    std::optional<Job> job_there;       // of the checkpoint, where it can be read
    std::vector<std::string> problems;  // of checkpoints, such as those passed over; a line each
  };
  // What starting `job` here means. kFailedPrecondition when the directory is another job's, with
  // the fields that differ, when more than the whole job is done, or when there is a trained model
  // that a training from step 0 would replace; kDataLoss when no checkpoint that is there can be
  // read. Reads the newest checkpoint whole.
  absl::StatusOr<Decision> Decide(const Job& job) const;

  // A run keeps what it was begun with: has a job that leaves something to the number of workers
  // (LeavesToWorkers) go on with what the run has, or with `workers`.
  // kInvalidArgument is ResolveStrategy's.
  absl::Status ResolveStrategy(uint64_t workers, Job* job) const;

  // Writes job.json and makes logs/.
  absl::Status Prepare(const Job& job);

  const RunPaths& paths() const { return paths_; }  // absolute
  // Why nobody holds a lock, for people: the file system has none. Empty while this holds one.
  const std::string& not_locked() const { return not_locked_; }

 private:
  struct Made {
    bool directory = false;
    bool lock = false;
  };
  RunDirectory(std::string path, int lock, Made made)
      : paths_{std::move(path)}, lock_(lock), made_(made) {}
  absl::Status CheckSameJob(const Job& job) const;
  // Whether nothing is left to do after `newest`; sets `ended_after`.
  bool IsOver(const Job& job, const StoredCheckpoint& newest, Decision* decision) const;

  const RunPaths paths_;
  const int lock_;
  std::string not_locked_;
  Made made_;  // and it is to go again
};

}  // namespace shoal
