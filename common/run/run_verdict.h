#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/callback/callback.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/run/evaluations.h"
#include "common/run/history.h"
#include "common/run/run_paths.h"

namespace shoal {

// All steps of its epoch are in it, and none of the next.
bool IsAtEpochEnd(const Manifest& manifest);

// What the callbacks of a job make of a run, from what is on its disk, history.csv, evaluations.csv
// and checkpoints, and from nothing else: so whoever asks hears the same, a coordinator that has
// just taken over too. Plain data.
struct RunVerdict {
  // The best epoch of a callback; or, where an evaluator looks at each checkpoint, the best of
  // these.
  struct Best {
    std::string figure;  // as history.csv has it
    double value = 0;
    uint64_t epoch = 0;
    std::string callback;          // its class, or kEvaluator
    std::optional<uint64_t> step;  // of an evaluator's, which may lie within the epoch
    // That of the epoch's end; none where it has been removed by hand.
    std::optional<StoredCheckpoint> checkpoint;
  };
  std::vector<Best> best;  // in the order of the callbacks, of those that have one
  // Early stopping has ended the training after this epoch.
  std::optional<uint64_t> ended_after;
  std::string ended_by;  // the figure that has not become better,
  uint64_t waited = 0;   // for so many epochs

  // Where the epochs' results have been seen, so that a checkpoint at an epoch's end is one of its
  // values as they were evaluated.
  std::set<uint64_t> evaluated;
};

// RunVerdict::Best::callback of the best checkpoint that an evaluator has found.
inline constexpr char kEvaluator[] = "evaluator";

// `stored`: newest first; `evaluated`: by an evaluator. The best of these is by the figure of
// ModelCheckpoint, else of EarlyStopping, and of a job with neither by val_loss; there is none
// where it is a callback's already. A pure function.
RunVerdict JudgeRun(const std::vector<Callback>& callbacks,
                    const std::vector<proto::EpochResult>& epochs,
                    const std::vector<StoredCheckpoint>& stored,
                    const std::vector<CheckpointResult>& evaluated = {});

// The same of what is on disk. An error where history or checkpoints cannot be read.
absl::StatusOr<RunVerdict> ReadRunVerdict(const std::vector<Callback>& callbacks,
                                          const RunPaths& run, FileSystem* files);

// The end of a training.
struct RunEnd {
  StoredCheckpoint last;  // all that was trained
  StoredCheckpoint
      result;  // what the model is made of: the same, or the best epoch's, if it is there
};
// Where nothing is to follow `newest`: all steps are in it, and with callbacks the last epoch has
// been evaluated; or it is at the end of the epoch that early stopping has made the last.
std::optional<RunEnd> EndOfRun(const std::vector<Callback>& callbacks, const RunVerdict& verdict,
                               const StoredCheckpoint& newest);
// The same of a run on disk; none too where its history cannot be read.
std::optional<RunEnd> ReadEndOfRun(const std::vector<Callback>& callbacks, const RunPaths& run,
                                   const StoredCheckpoint& newest, FileSystem* files);

// Of the best checkpoints: those that stay.
std::set<std::string> DirectoriesOf(const RunVerdict& verdict);

// For people, a line each: which epoch is the best by a figure; why the training has ended early,
// and where the best checkpoints are.
std::string DescribeBest(const RunVerdict::Best& best);
std::vector<std::string> DescribeVerdict(const RunVerdict& verdict);
// For a status.
void FillVerdict(const RunVerdict& verdict, proto::StatusReply* status);

// --- For whoever uses a run, with no job at hand ---

// The checkpoint with the values that a run has come to, whose newest whole one is `newest`: of a
// training that is over its result, else `newest`. Not verified.
absl::StatusOr<StoredCheckpoint> ResultOf(const RunPaths& run, const StoredCheckpoint& newest,
                                          FileSystem* files = RealFileSystem());
// The best epoch, which has a checkpoint: as an evaluator has found it, else as ModelCheckpoint has
// it where the job has one, else as EarlyStopping. kNotFound: the run has had no evaluator and the
// job has no such callback, no epoch was evaluated yet, or there is no checkpoint of it; the
// message says which. Not verified.
absl::StatusOr<RunVerdict::Best> BestOf(const RunPaths& run, FileSystem* files = RealFileSystem());
// What the job of the run says of it; with no callbacks for a run without a checkpoint.
absl::StatusOr<RunVerdict> VerdictOf(const RunPaths& run, FileSystem* files = RealFileSystem());

}  // namespace shoal
