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

// Gives `job` what it leaves to the number of workers as the run has it whose checkpoints these
// are, newest first; nothing where none can be read.
void TakeResolvedFrom(const std::vector<StoredCheckpoint>& stored, Job* job,
                      FileSystem* files = RealFileSystem());

// Gives `job`, whose file names no columns of its table, the names that `run` has for them, the job
// of a checkpoint that it goes on from: so `shoal train` begins one. Whether it did.
bool TakeColumnsOf(const Job& run, Job* job);

}  // namespace shoal
