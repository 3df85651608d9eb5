#pragma once

#include <CLI/App.hpp>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// Adds the flags that give fields of a job in place of its file: --epochs, --batch_size, --seed and
// --set. What was given is in `overrides`, which outlives `command`, once that is parsed.
void AddJobFlags(CLI::App* command, std::vector<JobOverride>* overrides);

// Likewise those that mean something for a job that was trained: --batch_size and --set.
void AddTrainedJobFlags(CLI::App* command, std::vector<JobOverride>* overrides);

}  // namespace shoal
