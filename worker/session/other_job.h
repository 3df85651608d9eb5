#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace shoal {

// Returns kUnavailable, for a task that ends because its coordinator at `coordinator` has another
// job now. `its_job` and `own_job` are JobFingerprints.
absl::Status OtherJob(const std::string& coordinator, uint32_t its_job, uint32_t own_job);

}  // namespace shoal
