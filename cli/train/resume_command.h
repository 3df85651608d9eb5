#pragma once

#include <string>

#include "cli/train/train.h"

namespace shoal {

// The command that does again what was asked for, to be pasted into a shell: what is not left at
// its default, paths quoted where a shell needs it. --verbose is left out.
std::string ResumeCommand(const TrainOptions& options);

}  // namespace shoal
