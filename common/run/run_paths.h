#pragma once

#include <string>

namespace shoal {

// What a run directory holds (docs/formats.md). The coordinator writes it, `shoal` reads it.
struct RunPaths {
  std::string directory;

  std::string checkpoints() const { return directory + "/checkpoints"; }
  std::string history() const { return directory + "/history.csv"; }
  // The coordinator's HOST:PORT.
  std::string chief_address() const { return directory + "/chief.address"; }
  std::string model() const { return directory + "/model"; }
  // Of `shoal train`: the resolved job, and what each task said.
  std::string job() const { return directory + "/job.json"; }
  std::string logs() const { return directory + "/logs"; }
};

}  // namespace shoal
