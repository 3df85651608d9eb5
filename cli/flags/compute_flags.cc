#include "cli/flags/compute_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "cli/flags/device_check.h"
#include "cli/local_cluster/daemon_commands.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#include "worker/compute/registry/compute_device.h"

namespace shoal {

void AddComputeFlags(CLI::App* command, ComputeOptions* options) {
  command->add_option("--threads", options->threads, "Compute threads [the cores]")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", options->device, "cpu or cuda:N, as for workers")
      ->check(DeviceCheck({.automatic = false, .several = false}))
      ->capture_default_str();
}

absl::Status ChooseCompute(const ComputeOptions& options, ModelRunner::Options* runner) {
  if (const absl::Status here = CheckDevicesAreHere(options.device, cuda::SurveyDevices);
      !here.ok()) {
    return absl::Status(here.code(), absl::StrCat("--device: ", std::string(here.message())));
  }
  runner->backend = options.device;
  runner->threads = options.threads > 0 ? options.threads : ThreadsPerWorker(1);
  return absl::OkStatus();
}

}  // namespace shoal
