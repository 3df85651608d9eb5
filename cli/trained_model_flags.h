#pragma once

#include <CLI/App.hpp>

#include "cli/trained_model.h"

namespace shoal {

// Adds what says which trained model a command is about: RUN, --checkpoint, --best, and the fields
// of its job, --batch_size and --set. What was given is in `options`, which outlives `command`.
void AddTrainedModelFlags(CLI::App* command, TrainedModelOptions* options);

}  // namespace shoal
