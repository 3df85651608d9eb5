#include <errno.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/command.h"
#include "cli/flags/device_check.h"
#include "cli/flags/job_flags.h"
#include "cli/train/train.h"

namespace shoal {

void AddTrainCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<TrainOptions>();
  options->program = program_invocation_name;
  CLI::App* train =
      app->add_subcommand("train", "Train a job on a cluster of processes on this machine");
  train->add_option("JOB", options->job_path, "The job file")->required();
  train->add_option("--workers", options->workers, "Workers, which compute gradients")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  CLI::Option* const ps =
      train->add_option("--ps", options->ps, "Parameter servers, which hold the variables")
          ->check(CLI::Range(1, 256))
          ->capture_default_str();
  auto colocate = std::make_shared<bool>(false);
  train
      ->add_flag("--colocate", *colocate,
                 "As many parameter servers as workers, as if each machine ran one of both")
      ->excludes(ps);
  train->add_option("--run_dir", options->run_dir,
                    "Directory for checkpoints, model, history and logs [runs/NAME]");
  train
      ->add_option("--threads", options->threads,
                   "Compute threads of each worker [cores / workers]")
      ->check(CLI::Range(1, 1024));
  train
      ->add_option("--device", options->device,
                   "Device of each worker: auto (a free GPU, or the CPU), cpu, cuda:N, or "
                   "several, as in cuda:0,cuda:1")
      ->check(DeviceCheck({}))
      ->capture_default_str();
  train->add_flag(
      "--tf32", options->tf32,
      "On a GPU: multiply float32 with tensor cores, which read 19 bits of each number");
  train->add_flag("--deterministic", options->deterministic,
                  "On a GPU: repeat a step with the same bits; under sync this is always so");
  AddJobFlags(train, &options->overrides);
  train
      ->add_option("--max_restarts", options->max_restarts,
                   "Max restarts of a process that dies; one minute of life resets the count")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  train->add_flag("--tls", options->tls,
                  "Encrypt and authenticate all traffic, with certificates of this run alone");
  train->add_flag("--verbose", options->verbose, "Show every line that a process logs");
  train->footer(
      "A run directory with a checkpoint is resumed; Ctrl-C stops with a checkpoint, a second "
      "one at "
      "once.\n"
      "\nExamples:\n"
      "  shoal train job.json\n"
      "  shoal train job.json --workers 4 --ps 2\n"
      "  shoal train job.json --seed 2 --run_dir runs/second_try\n"
      "  shoal train job.json --epochs 3 --set optimizer.config.learning_rate=0.01\n"
      "\nExit codes: 0 done, 143 stopped with a checkpoint, 64 wrong flags, 78 wrong job or run "
      "directory, too little memory,\n"
      "65 damaged data, 77 another coordinator has taken over, 138 worth another try.");
  train->callback([options, colocate, chosen] {
    if (*colocate) options->ps = options->workers;
    *chosen = [options] { return Train(*options); };
  });
}

}  // namespace shoal
