#pragma once

#include <CLI/App.hpp>
#include <string>

#include "absl/status/status.h"
#include "cli/trained_model/checkpoint_choice.h"
#include "cli/trained_model/trained_model.h"

namespace shoal {

// Adds the options that select the checkpoint of a command: RUN, --checkpoint and --best. Parsing
// stores them in `path`, for FindCheckpoints(), and in `choice`; both must outlive `command`.
void AddCheckpointFlags(CLI::App* command, std::string* path, CheckpointChoice* choice);

// The same, plus the flags that override fields of the model's job: --batch_size and --set. Parsing
// stores them in `options`, which must outlive `command`.
void AddTrainedModelFlags(CLI::App* command, TrainedModelOptions* options);

// AddOverwriteFlag adds --overwrite, the `replace` of OutputFile. NameOverwriteFlag adds to the
// error about an existing file what the user can do on the command line.
void AddOverwriteFlag(CLI::App* command, bool* overwrite);
absl::Status NameOverwriteFlag(const absl::Status& status);

}  // namespace shoal
