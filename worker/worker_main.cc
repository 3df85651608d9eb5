// shoal-worker: computes gradients for a coordinator, or evaluates checkpoints as the evaluator of
// a cluster spec.

#include "common/daemon/process/process_environment.h"
#include "worker/compute/registry/compute_device.h"
#include "worker/worker_process.h"

int main(int argc, char** argv) {
  const absl::Status passive = shoal::UsePassiveOpenMpThreads(argv);
  shoal::Daemon daemon("shoal-worker", shoal::TaskType::kWorker,
                       "Computes gradients of a job's steps, or evaluates its checkpoints.");
  shoal::WorkerFlags flags;
  daemon.settings().AddText(
      "chief", &flags.chief,
      "HOST:PORT of the coordinator; joins without a place in the cluster spec");
  daemon.settings().AddForms(
      "device", &flags.device, shoal::DeviceNames(),
      [](const std::string& name) { return shoal::CheckDeviceName(name); },
      "Device: auto (a GPU if there is one, else the cpu), cpu, cuda:N, or several, "
      "separated by commas, which share each batch");
  daemon.settings().AddSwitch(
      "tf32", &flags.tf32,
      "On a GPU: multiply float32 with tensor cores, which read 19 bits of each number");
  daemon.settings().AddSwitch(
      "deterministic", &flags.deterministic,
      "On a GPU: repeat a step with the same bits; under sync this is always so");
  daemon.settings().AddInteger("threads", &flags.threads, 0, 1024,
                               "Compute threads; 0: one for each core of the CPU quota");
  daemon.settings().AddNumber("coordinator_timeout", &flags.coordinator_timeout, 0, 1e9,
                              "Exit with 138 after this many seconds without a coordinator");
  daemon.settings().AddText("step_records", &flags.step_records,
                            "Directory for a record of every finished step and its examples");
  daemon.settings().AddTexts(
      "data_root", &flags.data_roots,
      "Directory below which it reads the job's data, after links are resolved; several are "
      "divided by ':' or given by several flags; without it, it reads every file that the job "
      "names");
  daemon.SetExamples(
      "Examples:\n"
      "  shoal-worker --chief=10.0.0.1:2222                one more worker of a running job\n"
      "  TF_CONFIG=\"$(cat spec.json)\" shoal-worker        the worker that its `task` names\n"
      "  shoal-worker --cluster_spec=spec.json --threads=2\n"
      "Where `task` is {\"type\": \"evaluator\", \"index\": 0}, it evaluates each checkpoint of "
      "the "
      "job as it appears.\n"
      "It waits for the coordinator, reads the data of the job where the job file says, and ends "
      "with the job.");
  return daemon.Run(argc, argv, [&] {
    if (!passive.ok()) shoal::LogWarning(std::string(passive.message()));
    return shoal::RunWorker(daemon, flags);
  });
}
