#include "ps/ps_process.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/daemon/process/incarnation.h"
#include "common/monitoring/start_monitoring.h"
#include "common/rpc/grpc/grpc_network.h"
#include "ps/parameter_server.h"

namespace shoal {

absl::Status RunPs(Daemon& daemon, Time drain_timeout) {
  SHOAL_ASSIGN_OR_RETURN(const ClusterSpec spec, daemon.ReadClusterSpec());
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, daemon.OpenTls({Role::kPs}));
  const std::unique_ptr<GrpcNetwork> network =
      GrpcNetwork::Create({.tls = tls, .warn = [](const std::string& what) { LogWarning(what); }});
  EventLoop* const loop = network->loop();
  absl::Status result = absl::OkStatus();
  const auto end = [&] {
    daemon.Ending(result);
    loop->Stop();
  };
  ParameterServer server(
      {.index = spec.task.index,
       .incarnation = DrawIncarnation(),
       .loop = loop,
       .control = {.coordinator = spec.coordinator_address().ToString(),
                   .workers = static_cast<int>(spec.workers.size()),
                   .memory = ReadMemoryLimit(),
                   .on_memory_needs = [&](uint64_t bytes) { network->KeepFree(bytes); },
                   .on_stopped = end}});

  SHOAL_RETURN_IF_ERROR(
      daemon.Listen(*spec.Find(spec.task), network.get(),
                    [&server](const std::string& method, std::unique_ptr<Stream> stream) {
                      return server.Accept(method, std::move(stream));
                    }));
  SHOAL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Monitoring> monitoring,
      StartMonitoring(daemon, *spec.Find(spec.task), network.get(),
                      {.collect = [&server](MetricSamples* out) { server.Collect(out); },
                       .check_ready = [&server] { return server.CheckReady(); }}));
  daemon.OnStopSignal([&](int count) {
    loop->Post([&, count] {
      result = absl::CancelledError("stopped by a signal");
      // A second signal ends this ps at once.
      count == 1 ? server.Leave(drain_timeout) : end();
    });
  });
  daemon.Serving(loop);
  network->Run();
  daemon.OnStopSignal(nullptr);
  return result;
}

}  // namespace shoal
