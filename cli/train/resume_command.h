#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/train/train.h"

namespace shoal {

// The command that does again what was asked for, to be pasted into a shell: what is not left at
// its default, paths quoted where a shell needs it. --verbose is left out.
std::string ResumeCommand(const TrainOptions& options);

// The sentence that stands above it: what the newest checkpoint has, and how many steps that were
// done it lacks. `checkpoint_step`: all steps below it are in; absent: there is none. `steps_done`:
// as far as is known.
std::string DescribeKept(std::optional<uint64_t> checkpoint_step, uint64_t steps_done);

}  // namespace shoal
