#pragma once

#include <CLI/App.hpp>
#include <string>

#include "absl/status/status.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Where a command of the CLI computes.
struct ComputeOptions {
  std::string device = "cpu";
  int threads = 0;  // 0: all cores
};

// Adds --device and --threads. Parsing stores them in `options`, which must outlive `command`.
void AddComputeFlags(CLI::App* command, ComputeOptions* options);

// Sets the device and the threads of a runner. Error: a GPU that this machine does not have.
absl::Status ChooseCompute(const ComputeOptions& options, ModelRunner::Options* runner);

}  // namespace shoal
