#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_system.h"

namespace shoal {

// Whether a job goes on from a checkpoint. kFailedPrecondition: that is of another job, with the
// fields that differ; kDataLoss: its job is damaged; other errors are those of reading it. Reads
// files.
absl::Status CheckSameJob(const StoredCheckpoint& checkpoint, const std::string& job_text,
                          uint32_t job_fingerprint, FileSystem* files);

}  // namespace shoal
