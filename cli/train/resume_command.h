#pragma once

#include <string>

#include "cli/train/train.h"

namespace shoal {

// Returns the shell command that repeats the training: all options that differ from their defaults,
// with paths quoted if necessary. Omits --verbose.
std::string ResumeCommand(const TrainOptions& options);

}  // namespace shoal
