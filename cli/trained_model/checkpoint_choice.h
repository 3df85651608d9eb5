#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"

namespace shoal {

// The checkpoints that a path names: those of a run directory or of its checkpoints/, or one
// step-* directory itself.
struct FoundCheckpoints {
  std::string root;  // absolute, what holds them; empty where the path is one checkpoint
  std::vector<StoredCheckpoint> checkpoints;  // newest first
  std::vector<std::string> problems;          // manifests that cannot be read
  std::vector<std::string> unfinished;        // directories without a manifest
  std::string run;                            // directory; empty likewise
};

// kNotFound: there is none.
absl::StatusOr<FoundCheckpoints> FindCheckpoints(const std::string& path);

// Which of them is wanted.
struct CheckpointChoice {
  std::string name;   // "step-000000000500-1-0badcafe"; empty: what the run has come to
  bool best = false;  // of the run, by its callbacks (BestOf); not with a name
};

// That one, verified. What a run has come to is the newest that is whole and finite, as a training
// that resumes takes it; of one that is over with "restore_best_weights" the best. What is passed
// over is added to `said`, and by which figure one is the best. kDataLoss: what there is is
// damaged; kNotFound: there is none such.
absl::StatusOr<StoredCheckpoint> ChooseCheckpoint(const FoundCheckpoints& found,
                                                  const CheckpointChoice& choice,
                                                  std::vector<std::string>* said);

}  // namespace shoal
