#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// Returns the message of a task that ends because its coordinator at `chief` has another job now.
// `its_job` and `own_job` are JobFingerprints.
std::string OtherJob(const std::string& chief, uint32_t its_job, uint32_t own_job);

}  // namespace shoal
