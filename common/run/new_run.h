#pragma once

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "common/run/run_paths.h"

namespace shoal {

// Whether the run's directory contains the model of an ended training. Reads the disk.
bool HasModel(const RunPaths& run, FileSystem* files);

// Checks whether a training may begin at step 0 in a run directory without checkpoints. Returns
// kFailedPrecondition if it contains a trained model, which the training would finally replace.
// Reads the disk.
absl::Status CheckReplacesNothing(const RunPaths& run, FileSystem* files);

}  // namespace shoal
