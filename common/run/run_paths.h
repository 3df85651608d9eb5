#pragma once

#include <string>

namespace shoal {

// The files of a run directory (docs/formats.md). The coordinator writes most of them, `shoal
// train` the others.
struct RunPaths {
  std::string directory;

  std::string checkpoints() const { return directory + "/checkpoints"; }
  std::string history() const { return directory + "/history.csv"; }
  // The results of an evaluator (common/run/evaluations.h), if the run has had one.
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
  // Written by `shoal train`: the resolved job, and the output of each task.
  std::string job() const { return directory + "/job.json"; }
  std::string logs() const { return directory + "/logs"; }
  // The certificates of `shoal train --tls`.
  std::string tls() const { return directory + "/tls"; }
  // Held while `shoal train` runs.
  std::string lock() const { return directory + "/.lock"; }
};

// Returns the run directory of a job: `run_dir`, or runs/NAME if that is empty.
inline std::string RunDirectoryOf(const std::string& run_dir, const std::string& job_name) {
  return run_dir.empty() ? "runs/" + job_name : run_dir;
}

}  // namespace shoal
