#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/callback/callback.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/run/evaluations.h"
#include "common/run/history.h"
#include "common/run/run_paths.h"

namespace shoal {

// Whether it contains all steps of its epoch and none of the next.
bool IsAtEpochEnd(const Manifest& manifest);

// The decisions of a job's callbacks about a run. They depend only on the files of the run:
// history.csv, evaluations.csv and checkpoints. This gives every reader the same result, also a
// coordinator that just took over. Plain data.
struct RunVerdict {
  // The best epoch of a callback, or the best of the checkpoints that an evaluator evaluated.
  struct Best {
    std::string figure;  // its name in history.csv
    double value = 0;
    uint64_t epoch = 0;
    std::string callback;          // its class, or kEvaluator
    std::optional<uint64_t> step;  // of an evaluator's checkpoint, which may be within the epoch
    // The checkpoint at the epoch's end; empty if the user removed it.
    std::optional<StoredCheckpoint> checkpoint;
  };
  std::vector<Best> best;  // of the callbacks that have one, in their order
  // The epoch after which early stopping ended the training.
  std::optional<uint64_t> ended_after;
  std::string ended_by;  // the figure that did not improve
  uint64_t waited = 0;   // for this number of epochs

  // Epochs with results on the test set. A checkpoint at the end of such an epoch has the evaluated
  // values.
  std::set<uint64_t> evaluated;

  // Not OK: evaluations.csv cannot be read, or has invalid lines, so the best of an evaluator is
  // unknown. Names the file, and the first invalid line.
  absl::Status unread_evaluations;
};

// RunVerdict::Best::callback for the best checkpoint of an evaluator.
inline constexpr char kEvaluator[] = "evaluator";

// Computes the verdict. `stored` is newest first; `evaluated` are the results of an evaluator. The
// best of these is by the figure of ModelCheckpoint, else of EarlyStopping, else by val_loss. It is
// omitted if it is already a callback's best. A pure function.
RunVerdict JudgeRun(const std::vector<Callback>& callbacks,
                    const std::vector<proto::EpochResult>& epochs,
                    const std::vector<StoredCheckpoint>& stored,
                    const std::vector<CheckpointResult>& evaluated = {});

// The same for the files of a run. Returns an error if history or checkpoints cannot be read, or if
// there is neither a callback nor a valid evaluation to judge by, because the evaluations cannot be
// read. Otherwise, see RunVerdict::unread_evaluations.
absl::StatusOr<RunVerdict> ReadRunVerdict(const std::vector<Callback>& callbacks,
                                          const RunPaths& run, FileSystem* files);

// The end of a training.
struct RunEnd {
  StoredCheckpoint last;    // contains all steps of the training
  StoredCheckpoint result;  // source of the model: `last`, or the best epoch's, if it exists
  // Set if early stopping ended the training before all steps: after this epoch.
  std::optional<uint64_t> ended_after = {};
};
// Returns the end of the run if no step follows `newest`, else nullopt. It is the end if `newest`
// contains all steps and, with callbacks, the last epoch was evaluated. It is also the end at the
// last epoch by early stopping.
std::optional<RunEnd> EndOfRun(const std::vector<Callback>& callbacks, const RunVerdict& verdict,
                               const StoredCheckpoint& newest);
// The same for the files of a run. Returns an error if the verdict decides, but cannot be read.
absl::StatusOr<std::optional<RunEnd>> ReadEndOfRun(const std::vector<Callback>& callbacks,
                                                   const RunPaths& run,
                                                   const StoredCheckpoint& newest,
                                                   FileSystem* files);

// The directories of the best checkpoints.
std::set<std::string> DirectoriesOf(const RunVerdict& verdict);
// The same for the files of a run: they are not removed. Returns an error if a best checkpoint may
// be unknown.
absl::StatusOr<std::set<std::string>> ReadBestDirectories(const std::vector<Callback>& callbacks,
                                                          const RunPaths& run, FileSystem* files);

// Lines for the user: the best epoch by a figure; the reason for an early end, the directories of
// the best checkpoints, and the error that hides the evaluator's.
std::string DescribeBest(const RunVerdict::Best& best);
std::vector<std::string> DescribeVerdict(const RunVerdict& verdict);
// Adds the verdict to a status.
void FillVerdict(const RunVerdict& verdict, proto::StatusReply* status);

// --- For users of a run who have no job ---

// Returns the checkpoint with the run's result: RunEnd::result if the training has ended, else
// `newest`, its newest complete checkpoint. Does not verify it.
absl::StatusOr<StoredCheckpoint> ResultOf(const RunPaths& run, const StoredCheckpoint& newest,
                                          FileSystem* files = RealFileSystem());
// Returns the best epoch, which has a checkpoint. The choice is the evaluator's, else that of
// ModelCheckpoint, else that of EarlyStopping. Returns kNotFound, with the reason, if there is no
// evaluator and no such callback, no evaluated epoch, or no checkpoint of the best epoch.
// kDataLoss: the files of the run cannot be read. Does not verify it.
absl::StatusOr<RunVerdict::Best> BestOf(const RunPaths& run, FileSystem* files = RealFileSystem());
// The verdict by the callbacks of the run's job. Empty for a run without a checkpoint.
absl::StatusOr<RunVerdict> VerdictOf(const RunPaths& run, FileSystem* files = RealFileSystem());

}  // namespace shoal
