#include "worker/worker_process.h"

#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/usable_cores.h"
#include "common/daemon/process/incarnation.h"
#include "common/daemon/process/process_mark.h"
#include "common/monitoring/start_monitoring.h"
#include "common/rpc/grpc/grpc_network.h"
#include "worker/compute/cuda/create_cuda_backend.h"
#include "worker/compute/registry/compute_device.h"
#include "worker/evaluator_process.h"
#include "worker/gpu_stats.h"
#include "worker/input/files/data_roots.h"
#include "worker/session/step_records.h"
#include "worker/session/worker_session.h"
#include "worker/step/compute_thread.h"

namespace shoal {

int ThreadsOf(const WorkerFlags& flags) {
  if (flags.threads > 0) return static_cast<int>(flags.threads);
  return UsableCores();
}

NumericsOptions NumericsOf(const WorkerFlags& flags) {
  return {.tf32 = flags.tf32, .nondeterministic = !flags.deterministic};
}

absl::StatusOr<std::vector<std::string>> DataRootsOf(const WorkerFlags& flags) {
  absl::StatusOr<std::vector<std::string>> roots = ResolveDataRoots(flags.data_roots);
  if (roots.ok()) return roots;
  return absl::Status(roots.status().code(),
                      absl::StrCat("--data_root: ", std::string(roots.status().message()),
                                   "; name a directory of this machine"));
}

bool MayQuoteData(bool tls, const std::string& coordinator) {
  const absl::StatusOr<Address> address = Address::Parse(coordinator);
  return tls || (address.ok() && address->IsLoopback());
}

absl::Status RunWorker(Daemon& daemon, const WorkerFlags& flags) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> data_roots, DataRootsOf(flags));
  absl::StatusOr<std::vector<ComputeDevice>> devices =
      ChooseDevices(flags.device, {.survey = cuda::SurveyDevices,
                                   .free_bytes = cuda::FreeBytes,
                                   .check_libraries = cuda::CheckLibraries});
  if (!devices.ok()) {
    return absl::Status(devices.status().code(),
                        "--device: " + std::string(devices.status().message()));
  }
  for (const ComputeDevice& device : *devices) {
    if (!device.reason.empty()) LogInfo(device.reason);
  }
  if (devices->size() > 1) {
    LogInfo(absl::StrCat("computes each batch in ", devices->size(), " parts at once, on ",
                         NameOf(*devices)));
  }
  if (flags.tf32 && devices->front().uuid.empty()) {
    LogInfo(absl::StrCat("--tf32 has no effect: it is for GPUs, and this worker computes on ",
                         devices->front().name));
  }
  std::string coordinator = flags.chief;
  std::optional<uint32_t> index;
  Address own;
  if (coordinator.empty()) {
    SHOAL_ASSIGN_OR_RETURN(const ClusterSpec cluster, daemon.ReadClusterSpec());
    if (cluster.task.type == TaskType::kEvaluator)
      return RunEvaluator(daemon, flags, cluster, *devices);
    coordinator = cluster.coordinator_address().ToString();
    index = cluster.task.index;
    own = *cluster.Find(cluster.task);
  } else if (const absl::StatusOr<Address> address = Address::Parse(coordinator); address.ok()) {
    own = *address;  // this worker is on the coordinator's loopback, or on its network
  } else {
    return absl::InvalidArgumentError("--chief: " + std::string(address.status().message()));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, daemon.OpenTls({Role::kWorker}));
  std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({.tls = tls});
  EventLoop* const loop = network->loop();
  StepRecords records(flags.step_records);
  const bool record = !flags.step_records.empty();
  std::function<void(uint64_t, const std::vector<uint64_t>&)> on_examples;
  if (record) {
    on_examples = [&](uint64_t step, const std::vector<uint64_t>& examples) {
      records.Computing(step, examples);
    };
  }
  const auto on_step = [&](uint64_t timeline, uint64_t step) {
    if (record) records.Finished(timeline, step);
  };
  const auto on_index = [&](uint32_t given) {
    daemon.NameTask({TaskType::kWorker, static_cast<int>(given)});
    records.SetWorker(given);
  };
  absl::Status result;
  const auto on_over = [&](WorkerSession::End end, const absl::Status& status) {
    result = end == WorkerSession::End::kDrained ? absl::CancelledError("drained") : status;
    daemon.Ending(result);
    loop->Stop();
  };
  ComputeThread computer({.loop = loop,
                          .backend = NameOf(*devices),
                          .numerics = NumericsOf(flags),
                          .threads = ThreadsOf(flags),
                          .memory = ReadMemoryLimit(),
                          .data_roots = data_roots,
                          .on_examples = on_examples});
  WorkerSession session({.loop = loop,
                         .network = network.get(),
                         .computer = &computer,
                         .coordinator = coordinator,
                         .index = index,
                         .incarnation = DrawIncarnation(),
                         .host = HostName(),
                         .pid = static_cast<uint64_t>(getpid()),
                         .device = NameOf(*devices),
                         .threads = static_cast<uint32_t>(ThreadsOf(flags)),
                         .may_quote_data = MayQuoteData(tls != nullptr, coordinator),
                         .coordinator_timeout = FromSeconds(flags.coordinator_timeout),
                         .on_step = on_step,
                         .on_index = on_index,
                         .on_over = on_over});
  const GpuStats gpu = GpuStats::Of(*devices);
  SHOAL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Monitoring> monitoring,
      StartMonitoring(daemon, own, network.get(),
                      {.collect = [&session](MetricSamples* out) { session.Collect(out); },
                       .check_ready = [&session] { return session.CheckReady(); },
                       .collect_off_loop = [&gpu](MetricSamples* out) { gpu.Collect(out); }}));
  daemon.OnStopSignal(
      [&](int) { loop->Post([&session] { session.Drain("stopped by a signal"); }); });
  session.Start();
  daemon.Serving(loop);
  network->Run();
  daemon.OnStopSignal({});
  if (const LogFields fields = session.PerStep(); !fields.empty())
    LogInfo("where the time of its steps went", fields);
  return result;
}

}  // namespace shoal
