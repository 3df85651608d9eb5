#include "cli/flags/trained_model_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "cli/flags/job_flags.h"

namespace shoal {

void AddCheckpointFlags(CLI::App* command, std::string* path, CheckpointChoice* choice) {
  command->add_option("RUN", *path, "Run directory, its checkpoints/, or one checkpoint")
      ->required();
  CLI::Option* name =
      command->add_option("--checkpoint", choice->name,
                          "The name of a checkpoint of the run [the newest, or the restored best]");
  command
      ->add_flag("--best", choice->best, "The checkpoint of the best epoch, by the job's callbacks")
      ->excludes(name);
}

void AddTrainedModelFlags(CLI::App* command, TrainedModelOptions* options) {
  AddCheckpointFlags(command, &options->path, &options->checkpoint);
  AddTrainedJobFlags(command, &options->overrides);
}

void AddOverwriteFlag(CLI::App* command, bool* overwrite) {
  command->add_flag("--overwrite", *overwrite, "Replace the file if it exists");
}

absl::Status NameOverwriteFlag(const absl::Status& status) {
  if (!absl::IsAlreadyExists(status)) return status;
  return absl::AlreadyExistsError(
      absl::StrCat(status.message(), "; give --overwrite to replace a file"));
}

}  // namespace shoal
