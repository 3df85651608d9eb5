#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// Why a task ends whose coordinator at `chief` has another job by now, for people. `its_job` and
// `own_job` are JobFingerprints.
std::string OtherJob(const std::string& chief, uint32_t its_job, uint32_t own_job);

}  // namespace shoal
