#pragma once

#include <string>

namespace shoal {

// What a run directory holds (docs/formats.md): most is the coordinator's, some `shoal train`'s.
struct RunPaths {
  std::string directory;

  std::string checkpoints() const { return directory + "/checkpoints"; }
  std::string history() const { return directory + "/history.csv"; }
  // What an evaluator has found (common/run/evaluations.h); of a run that has had one.
  std::string evaluations() const { return directory + "/evaluations.csv"; }
  // The coordinator's HOST:PORT.
  std::string coordinator_address() const { return directory + "/chief.address"; }
  std::string model() const { return directory + "/model"; }
  // How the run ended last (common/run/run_outcome.h).
  std::string end() const { return directory + "/end.json"; }
  // Names the process that leads the run (coordinator/takeover/run_lock.h).
  std::string lease() const { return directory + "/.lease"; }
  // Tells the run from all others (common/run/run_id.h).
  std::string run_id() const { return directory + "/.run-id"; }
  // Of `shoal train`: the resolved job, and what each task said.
  std::string job() const { return directory + "/job.json"; }
  std::string logs() const { return directory + "/logs"; }
  // Held while `shoal train` runs.
  std::string lock() const { return directory + "/.lock"; }
};

// The run directory of a job: the one that was asked for, or runs/NAME.
inline std::string RunDirectoryOf(const std::string& asked_for, const std::string& job_name) {
  return asked_for.empty() ? "runs/" + job_name : asked_for;
}

}  // namespace shoal
