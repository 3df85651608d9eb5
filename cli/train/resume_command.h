#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/train/train.h"

namespace shoal {

// Returns the shell command that repeats the training: all options that differ from their defaults,
// with paths quoted if necessary. Omits --verbose.
std::string ResumeCommand(const TrainOptions& options);

// Returns the sentence above that command: which steps the newest checkpoint has, and how many
// finished steps are lost. The checkpoint has all steps below `checkpoint_step`; nullopt means that
// there is no checkpoint. `steps_done` is the last known number.
std::string DescribeSavedSteps(std::optional<uint64_t> checkpoint_step, uint64_t steps_done);

}  // namespace shoal
