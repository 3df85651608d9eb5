#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_system.h"

namespace shoal {

// Returns OK if the job can continue from the checkpoint. kFailedPrecondition: the checkpoint is of
// another job; the message names the fields that differ. kDataLoss: the checkpoint's job is
// damaged. Other errors come from reading it. Reads files.
absl::Status CheckSameJob(const StoredCheckpoint& checkpoint, const std::string& job_text,
                          uint32_t job_fingerprint, FileSystem* files);

}  // namespace shoal
