// shoal-coordinator: the task `chief` of TF_CONFIG. Leases steps, makes the ps write checkpoints,
// ends the job.

#include "coordinator/coordinator_process.h"

int main(int argc, char** argv) {
  shoal::Daemon daemon("shoal-coordinator", shoal::TaskType::kChief,
                       "Leases steps, makes the ps write checkpoints, ends the job.");
  std::string job_file, run_dir;
  daemon.settings().AddText("job", &job_file, "The job file (docs/job-file.md)");
  daemon.settings().SuggestForBareValue("job");
  for (const std::string field : {"epochs", "steps", "batch_size", "seed"}) {
    daemon.settings().AddAdvice(
        field, "it is a field of the job file: write \"" + field +
                   "\": N into the one that --job names, and check it with `shoal validate`");
  }
  daemon.settings().AddText("run_dir", &run_dir, "Directory of the run; runs/NAME if not given");
  bool take_over = false;
  daemon.settings().AddSwitch(
      "take_over", &take_over,
      "Take the ps even from a coordinator of another run that still trains "
      "with them; that one ends");
  daemon.SetExamples(
      "Examples:\n"
      "  TF_CONFIG='{\"cluster\": {\"chief\": [\"a:2222\"], \"ps\": [\"b:2222\"], \"worker\": "
      "[\"c:2222\"]},\n"
      "              \"task\": {\"type\": \"chief\", \"index\": 0}}' shoal-coordinator "
      "--job=job.json\n"
      "  shoal-coordinator --cluster_spec=spec.json --job=job.json --run_dir=/srv/runs/first\n"
      "Started again with the same --run_dir, it continues the run.");
  return daemon.Run(argc, argv,
                    [&] { return shoal::RunCoordinator(daemon, job_file, run_dir, take_over); });
}
