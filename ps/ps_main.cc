// shoal-ps: holds and updates the variables of one ps of the cluster spec.
#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/daemon/bind_address.h"
#include "common/daemon/daemon.h"
#include "common/rpc/grpc_network.h"
#include "ps/parameter_server.h"

namespace {

uint64_t DrawIncarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;  // never 0
}

absl::Status RunPs(shoal::Daemon& daemon, shoal::Time drain_timeout) {
  SHOAL_ASSIGN_OR_RETURN(const shoal::ClusterSpec spec, daemon.ReadClusterSpec());
  const std::unique_ptr<shoal::GrpcNetwork> network = shoal::GrpcNetwork::Create({});
  absl::Status result = absl::OkStatus();
  shoal::ParameterServer server({.index = spec.task.index,
                                 .incarnation = DrawIncarnation(),
                                 .loop = network.get(),
                                 .coordinator = spec.chief_address().ToString(),
                                 .on_stopped = [&] { network->Stop(); }});

  SHOAL_RETURN_IF_ERROR(shoal::ListenAsTask(
      *spec.Find(spec.task), network.get(),
      [&server](const std::string& method, std::unique_ptr<shoal::Stream> stream) {
        return server.Accept(method, std::move(stream));
      }));
  daemon.OnStopSignal([&](int count) {
    network->Post([&, count] {
      result = absl::CancelledError("stopped by a signal");
      // A second signal is not asked to wait.
      count == 1 ? server.Leave(drain_timeout) : network->Stop();
    });
  });
  network->Run();
  daemon.OnStopSignal(nullptr);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  shoal::Daemon daemon(
      "shoal-ps", shoal::TaskType::kPs,
      "Holds a share of the variables and applies the gradients that workers push.");
  daemon.settings().SetFooter(
      "Example, as `shoal train` starts it:\n"
      "  TF_CONFIG='{\"cluster\": {\"chief\": [\"a:2222\"], \"ps\": [\"b:2222\"], \"worker\": "
      "[\"c:2222\"]},\n"
      "              \"task\": {\"type\": \"ps\", \"index\": 0}}' shoal-ps\n"
      "It waits for the coordinator, needs no files of its own, and ends with the job.");
  double drain_timeout = 20;
  daemon.settings().AddNumber("drain_timeout", &drain_timeout, 0, 1e9,
                              "Seconds after SIGTERM within which the coordinator may have a "
                              "checkpoint written first");
  return daemon.Run(argc, argv, [&] {
    return RunPs(daemon, std::chrono::duration_cast<shoal::Time>(
                             std::chrono::duration<double>(drain_timeout)));
  });
}
