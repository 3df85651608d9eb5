#include "worker/evaluator_process.h"

#include <unistd.h>

#include <memory>

#include "common/base/status_macros.h"
#include "common/daemon/process/incarnation.h"
#include "common/daemon/process/process_mark.h"
#include "common/monitoring/start_monitoring.h"
#include "common/rpc/grpc/grpc_network.h"
#include "worker/gpu_stats.h"
#include "worker/session/evaluator_session.h"
#include "worker/step/compute_thread.h"

namespace shoal {

absl::Status RunEvaluator(Daemon& daemon, const WorkerFlags& flags, const ClusterSpec& cluster,
                          const std::vector<ComputeDevice>& devices) {
  if (!flags.step_records.empty()) {
    return absl::InvalidArgumentError(
        "--step_records: an evaluator computes no steps; leave the flag out");
  }
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> data_roots, DataRootsOf(flags));
  const Address& coordinator = cluster.coordinator_address();
  // The cluster spec need not list the evaluator. It then serves its metrics on the same loopback,
  // or the same network, as the coordinator.
  const Address* const listed = cluster.Find(cluster.task);
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, daemon.OpenTls({Role::kEvaluator}));
  std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({.tls = tls});
  EventLoop* const loop = network->loop();
  absl::Status result;
  const auto on_over = [&](const absl::Status& status) {
    result = status;
    daemon.Ending(result);
    loop->Stop();
  };
  const int threads = ThreadsOf(flags);
  ComputeThread computer({.loop = loop,
                          .backend = NameOf(devices),
                          .numerics = NumericsOf(flags),
                          .threads = threads,
                          .only_evaluates = true,
                          .memory = ReadMemoryLimit(),
                          .data_roots = data_roots});
  EvaluatorSession session({.loop = loop,
                            .network = network.get(),
                            .computer = &computer,
                            .coordinator = coordinator.ToString(),
                            .incarnation = DrawIncarnation(),
                            .host = HostName(),
                            .pid = static_cast<uint64_t>(getpid()),
                            .device = NameOf(devices),
                            .threads = static_cast<uint32_t>(threads),
                            .may_quote_data = MayQuoteData(tls != nullptr, coordinator.ToString()),
                            .coordinator_timeout = FromSeconds(flags.coordinator_timeout),
                            .on_over = on_over});
  const GpuStats gpu = GpuStats::Of(devices);
  SHOAL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Monitoring> monitoring,
      StartMonitoring(daemon, listed == nullptr ? coordinator : *listed, network.get(),
                      {.collect = [&session](MetricSamples* out) { session.Collect(out); },
                       .check_ready = [&session] { return session.CheckReady(); },
                       .collect_off_loop = [&gpu](MetricSamples* out) { gpu.Collect(out); }}));
  daemon.OnStopSignal(
      [&](int) { loop->Post([&session] { session.Stop("stopped by a signal"); }); });
  session.Start();
  daemon.Serving(loop);
  network->Run();
  daemon.OnStopSignal({});
  return result;
}

}  // namespace shoal
