#pragma once

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "common/run/run_paths.h"

namespace shoal {

// Whether the model of a training that has ended lies there. Reads the disk.
bool HoldsModel(const RunPaths& run, FileSystem* files);

// Whether a training may begin at step 0 in a run directory that holds no checkpoint:
// kFailedPrecondition where a trained model lies there, which it would replace in the end. Reads
// the disk.
absl::Status CheckNothingIsReplaced(const RunPaths& run, FileSystem* files);

}  // namespace shoal
