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

// The one among them to go on from: the newest that is whole and finite, as a training that resumes
// takes it, or the one of this name ("step-000000000500-1-0badcafe") where `name` is not empty.
// What is passed over is added to `problems`. kDataLoss: what there is is damaged; kNotFound: there
// is none of this name.
absl::StatusOr<StoredCheckpoint> ChooseCheckpoint(const FoundCheckpoints& found,
                                                  const std::string& name,
                                                  std::vector<std::string>* problems);

}  // namespace shoal
