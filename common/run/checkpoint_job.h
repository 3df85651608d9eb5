#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/files/file_system.h"
#include "common/job/job.h"

namespace shoal {

// Returns the job in a checkpoint, as of its writing. Reads `overrides` as if the job contained
// them. Errors are those of the file and of ParseResolvedJob().
absl::StatusOr<Job> JobOf(const StoredCheckpoint& checkpoint, FileSystem* files = RealFileSystem(),
                          const std::vector<JobOverride>& overrides = {},
                          std::vector<std::string>* overridden = nullptr);

// Copies the settings that `job` leaves to the number of workers from a run with these checkpoints,
// newest first. Does nothing if no checkpoint's job is readable.
void TakeResolvedFrom(const std::vector<StoredCheckpoint>& stored, Job* job,
                      FileSystem* files = RealFileSystem());

// Copies the names of a csv table's columns from `run`, the job of a checkpoint, if `job` names
// none. `shoal train` writes these names when it begins a run. Returns whether it copied them.
bool TakeColumnsOf(const Job& run, Job* job);

}  // namespace shoal
