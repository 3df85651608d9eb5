// shoal-worker: computes gradients, for whoever coordinates.

#include <unistd.h>

#include <memory>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/daemon/daemon.h"
#include "common/daemon/process_environment.h"
#include "common/rpc/grpc_network.h"
#include "common/rpc/transport_tuning.h"
#include "worker/compute_thread.h"
#include "worker/step_records.h"
#include "worker/worker_session.h"

namespace shoal {
namespace {

struct WorkerFlags {
  std::string chief;
  std::string device = "cpu";
  int64_t threads = 0;
  double coordinator_timeout = 600;
  std::string step_records;
};

absl::Status RunWorker(Daemon& daemon, const WorkerFlags& flags) {
  std::string chief = flags.chief;
  std::optional<uint32_t> index;
  if (chief.empty()) {
    SHOAL_ASSIGN_OR_RETURN(const ClusterSpec cluster, daemon.ReadClusterSpec());
    chief = cluster.chief_address().ToString();
    index = cluster.task.index;
  } else {
    SHOAL_RETURN_IF_ERROR(Address::Parse(chief).status());
  }
  const int threads = flags.threads > 0
                          ? static_cast<int>(flags.threads)
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);

  TuneAllocatorForTransport();
  std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  StepRecords records(flags.step_records);
  const bool record = !flags.step_records.empty();
  ComputeThread computer({.loop = network.get(),
                          .backend = flags.device,
                          .threads = threads,
                          .on_batch = [&](const LoadedBatch& batch) {
                            if (record) records.Computing(batch.step, batch.indices);
                          }});
  absl::Status result;
  WorkerSession session({.loop = network.get(),
                         .network = network.get(),
                         .computer = &computer,
                         .chief = chief,
                         .index = index,
                         .incarnation = std::random_device()() | uint64_t{1} << 32,
                         .host = host,
                         .pid = static_cast<uint64_t>(getpid()),
                         .device = flags.device,
                         .threads = static_cast<uint32_t>(threads),
                         .coordinator_timeout = std::chrono::duration_cast<Time>(
                             std::chrono::duration<double>(flags.coordinator_timeout)),
                         .on_step =
                             [&](uint64_t timeline, uint64_t step) {
                               if (record) records.Finished(timeline, step);
                             },
                         .on_index =
                             [&](uint32_t given) {
                               daemon.NameTask({TaskType::kWorker, static_cast<int>(given)});
                               if (!record) return;
                               if (absl::Status opened = records.Open(given); !opened.ok())
                                 LogError(std::string(opened.message()));
                             },
                         .on_over =
                             [&](WorkerSession::End end, const absl::Status& status) {
                               result = end == WorkerSession::End::kDrained
                                            ? absl::CancelledError("drained")
                                            : status;
                               network->Stop();
                             }});
  daemon.OnStopSignal([&](int count) {
    network->Post([&session, count] { session.Drain(absl::StrCat("stop signal ", count)); });
  });
  session.Start();
  network->Run();
  daemon.OnStopSignal({});
  return result;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  const absl::Status passive = shoal::UsePassiveOpenMpThreads(argv);
  shoal::Daemon daemon("shoal-worker", shoal::TaskType::kWorker,
                       "Computes gradients of a job's steps.");
  shoal::WorkerFlags flags;
  daemon.settings().AddText(
      "chief", &flags.chief,
      "HOST:PORT of the coordinator; joins without a place in the cluster spec");
  daemon.settings().AddChoice("device", &flags.device, {"cpu", "reference"}, "What computes");
  daemon.settings().AddInteger("threads", &flags.threads, 0, 1024,
                               "Compute threads; 0: one for each core");
  daemon.settings().AddNumber("coordinator_timeout", &flags.coordinator_timeout, 0, 1e9,
                              "Seconds without a coordinator after which to exit with 138");
  daemon.settings().AddText("step_records", &flags.step_records,
                            "Directory for a record of every finished step and its examples");
  return daemon.Run(argc, argv, [&] {
    if (!passive.ok()) shoal::LogWarning(std::string(passive.message()));
    return shoal::RunWorker(daemon, flags);
  });
}
