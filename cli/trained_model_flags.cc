#include "cli/trained_model_flags.h"

#include <CLI/CLI.hpp>

#include "cli/job_flags.h"

namespace shoal {

void AddTrainedModelFlags(CLI::App* command, TrainedModelOptions* options) {
  command->add_option("RUN", options->path, "Run directory, its checkpoints/, or one checkpoint")
      ->required();
  CLI::Option* name = command->add_option("--checkpoint", options->checkpoint.name,
                                          "Which of the run's, by name [the newest that is whole]");
  command
      ->add_flag("--best", options->checkpoint.best,
                 "The one of the best epoch, as the job's callbacks have it")
      ->excludes(name);
  AddTrainedJobFlags(command, &options->overrides);
}

}  // namespace shoal
