#pragma once

#include <CLI/App.hpp>
#include <string>

#include "absl/status/status.h"
#include "cli/trained_model/checkpoint_choice.h"
#include "cli/trained_model/trained_model.h"

namespace shoal {

// Adds what says which checkpoint a command is about: RUN, --checkpoint and --best. What was given
// is in `path`, for FindCheckpoints(), and in `choice`; both outlive `command`.
void AddCheckpointFlags(CLI::App* command, std::string* path, CheckpointChoice* choice);

// The same, and the fields of the model's job: --batch_size and --set. What was given is in
// `options`, which outlives `command`.
void AddTrainedModelFlags(CLI::App* command, TrainedModelOptions* options);

// Adds --overwrite, which goes to OutputFile as `replace`; and says in the words of the command
// line what can be done where a file is there.
void AddOverwriteFlag(CLI::App* command, bool* overwrite);
absl::Status NameOverwriteFlag(const absl::Status& status);

}  // namespace shoal
