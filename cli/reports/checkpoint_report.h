#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace shoal {

// The output of `shoal checkpoint`. `path` is a run directory, its checkpoints/, or the directory
// of one checkpoint. kNotFound, with a sentence about it, if there is no checkpoint.
struct CheckpointReport {
  std::string text;        // lines for people
  bool all_intact = true;  // every checkpoint is intact
};

// Lists the checkpoints in a table, newest first: step, epoch, timeline, size, time, directory, and
// whether the checkpoint is intact. Reads all files to verify that. Below the table it describes
// the damage. `now` serves for the ages.
absl::StatusOr<CheckpointReport> ListCheckpoints(const std::string& path, absl::Time now);

// Shows the manifest of the newest checkpoint, and each variable with its shape.
absl::StatusOr<std::string> ShowCheckpoint(const std::string& path);

// Verifies all files of all checkpoints; a line for each file.
absl::StatusOr<CheckpointReport> VerifyAllFiles(const std::string& path);

}  // namespace shoal
