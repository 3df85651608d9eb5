#include "cli/local_cluster/daemon_commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "cli/local_cluster/local_certificates.h"
#include "common/base/usable_cores.h"

namespace shoal {
namespace {

// Returns true for variables that a daemon of a local cluster does not inherit. Ignores case.
bool IsLeftOut(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  static constexpr std::array kNames = {"TF_CONFIG",       "HTTP_PROXY",     "HTTPS_PROXY",
                                        "GRPC_PROXY",      "ALL_PROXY",      "NO_PROXY",
                                        "OMP_NUM_THREADS", "OMP_WAIT_POLICY"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  // Settings of one daemon would apply to all. Those of logs and records suit all daemons.
  return name.starts_with("SHOAL_") && !name.starts_with("SHOAL_LOG_") &&
         name != "SHOAL_STEP_RECORDS";
}

ChildProcess::Options Command(const ClusterPlan& plan, const TaskId& task, const char* program,
                              std::vector<std::string> arguments,
                              std::vector<std::string> environment) {
  environment.push_back("TF_CONFIG=" + TfConfigText(plan.addresses, task));
  // Otherwise threads that spin while they wait would take the cores from the other processes.
  environment.push_back("OMP_WAIT_POLICY=passive");
  environment.push_back("OMP_NUM_THREADS=" + std::to_string(plan.threads_per_worker));
  if (!plan.tls_dir.empty()) arguments.push_back("--tls_dir=" + TlsDirectoryOf(plan.tls_dir, task));
  arguments.push_back("--exit_with_parent=" + std::to_string(getpid()));
  return {.program = plan.binary_dir + "/" + program,
          .arguments = std::move(arguments),
          .environment = std::move(environment),
          .handles_sigterm = true};
}

}  // namespace

std::vector<TaskCommand> DaemonCommands(const ClusterPlan& plan,
                                        const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& variable : environment) {
    if (!IsLeftOut(variable.substr(0, variable.find('=')))) kept.push_back(variable);
  }
  std::vector<TaskCommand> commands;
  const auto add = [&](TaskType type, int index, const char* program,
                       std::vector<std::string> arguments) {
    const TaskId task{type, index};
    commands.push_back({task, Command(plan, task, program, std::move(arguments), kept)});
  };
  add(TaskType::kChief, 0, "shoal-coordinator",
      {"--job=" + plan.job_path, "--run_dir=" + plan.run_dir});
  for (size_t i = 0; i < plan.addresses.ps.size(); ++i) {
    add(TaskType::kPs, static_cast<int>(i), "shoal-ps", {});
  }
  std::vector<std::string> of_worker = {"--threads=" + std::to_string(plan.threads_per_worker),
                                        "--device=" + plan.device};
  if (plan.tf32) of_worker.push_back("--tf32");
  if (plan.deterministic) of_worker.push_back("--deterministic");
  for (size_t i = 0; i < plan.addresses.workers.size(); ++i) {
    add(TaskType::kWorker, static_cast<int>(i), "shoal-worker", of_worker);
  }
  return commands;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  return variables;
}

std::string OwnBinaryDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

int ThreadsPerWorker(int workers) { return std::max(1, UsableCores() / std::max(1, workers)); }

}  // namespace shoal
