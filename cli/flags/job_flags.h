#pragma once

#include <CLI/App.hpp>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// Adds the flags that override fields of the job file: --epochs, --batch_size, --seed and --set.
// Parsing stores them in `overrides`, which must outlive `command`.
void AddJobFlags(CLI::App* command, std::vector<JobOverride>* overrides);

// The same for a trained job, with the flags that apply to it: --batch_size and --set.
void AddTrainedJobFlags(CLI::App* command, std::vector<JobOverride>* overrides);

}  // namespace shoal
