#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/files/file_system.h"
#include "common/job/job.h"

namespace shoal {

// The job of a checkpoint, as it was when that was written; `overrides` are read as if they stood
// in it. Errors are the file's and ParseResolvedJob()'s.
absl::StatusOr<Job> JobOf(const StoredCheckpoint& checkpoint, FileSystem* files = RealFileSystem(),
                          const std::vector<JobOverride>& overrides = {},
                          std::vector<std::string>* overridden = nullptr);

// How many gradients make an update in the run whose checkpoints these are, newest first: what a
// job that leaves it to the number of workers goes on with. 0: there is none that says it.
uint64_t GradientsPerUpdateOf(const std::vector<StoredCheckpoint>& stored,
                              FileSystem* files = RealFileSystem());

// Gives `job`, whose file names no columns of its table, the names that `run` has for them, the job
// of a checkpoint that it goes on from: so `shoal train` begins one. Whether it did.
bool TakeColumnsOf(const Job& run, Job* job);

}  // namespace shoal
