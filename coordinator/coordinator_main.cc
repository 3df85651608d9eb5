// shoal-coordinator: the chief. Hands out steps, has checkpoints written, ends the job.

#include "coordinator/coordinator_process.h"

int main(int argc, char** argv) {
  shoal::Daemon daemon("shoal-coordinator", shoal::TaskType::kChief,
                       "Hands out steps, has checkpoints written, ends the job.");
  std::string job_file, run_dir;
  daemon.settings().AddText("job", &job_file, "The job file (docs/job-file.md)");
  daemon.settings().AddText("run_dir", &run_dir, "Directory of the run; runs/NAME if not given");
  return daemon.Run(argc, argv, [&] { return shoal::RunCoordinator(daemon, job_file, run_dir); });
}
