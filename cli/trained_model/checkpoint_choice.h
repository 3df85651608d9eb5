#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"

namespace shoal {

// The checkpoints at a path: a run directory, its checkpoints/, or one step-* directory.
struct FoundCheckpoints {
  std::string root;  // their directory, absolute; empty if the path is one checkpoint
  std::vector<StoredCheckpoint> checkpoints;  // newest first
  std::vector<std::string> problems;          // unreadable manifests
  std::vector<std::string> unfinished;        // directories without a manifest
  std::string run;                            // run directory; empty likewise
};

// kNotFound: there is no checkpoint.
absl::StatusOr<FoundCheckpoints> FindCheckpoints(const std::string& path);

// The choice of one checkpoint.
struct CheckpointChoice {
  std::string name;   // "step-000000000500-1-0badcafe"; empty: the run's result
  bool best = false;  // the best of the run, by its callbacks (BestOf); excludes a name
};

// Returns the chosen checkpoint, verified. A run's result is its newest checkpoint that is intact
// and finite, the same one from which a training resumes. If the run is over and has
// "restore_best_weights", it is the best one. Adds to `notes` the skipped checkpoints, and the
// figure by which a checkpoint is the best. kDataLoss: the existing checkpoints are damaged.
// kNotFound: no such checkpoint exists.
absl::StatusOr<StoredCheckpoint> ChooseCheckpoint(const FoundCheckpoints& found,
                                                  const CheckpointChoice& choice,
                                                  std::vector<std::string>* notes);

}  // namespace shoal
