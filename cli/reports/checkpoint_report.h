#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace shoal {

// What `shoal checkpoint` prints. `path` may be a run directory, its checkpoints/, or the directory
// of one checkpoint; kNotFound, with a sentence that says so, when there is no checkpoint in any of
// these ways.
struct CheckpointReport {
  std::string text;       // lines, for people
  bool all_whole = true;  // every checkpoint that was found is whole
};

// A table, newest first: step, epoch, timeline, size, time, directory, and whether it is whole
// (everything is read for that); below it what is wrong with those that are not. `now` is for ages.
absl::StatusOr<CheckpointReport> ListCheckpoints(const std::string& path, absl::Time now);

// The manifest of the newest checkpoint, and each variable with its shape.
absl::StatusOr<std::string> ShowCheckpoint(const std::string& path);

// Reads everything; a line for each file of each checkpoint.
absl::StatusOr<CheckpointReport> VerifyAllFiles(const std::string& path);

}  // namespace shoal
