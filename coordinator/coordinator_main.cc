// shoal-coordinator: the chief. Hands out steps, has checkpoints written, ends the job.

#include <memory>
#include <random>

#include "common/base/status_macros.h"
#include "common/checkpoint/durable_file.h"
#include "common/daemon/bind_address.h"
#include "common/daemon/daemon.h"
#include "common/job/job.h"
#include "common/rpc/grpc_network.h"
#include "common/rpc/transport_tuning.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

absl::Status RunCoordinator(Daemon& daemon, const std::string& job_file, std::string run_dir) {
  SHOAL_ASSIGN_OR_RETURN(const ClusterSpec cluster, daemon.ReadClusterSpec());
  SHOAL_ASSIGN_OR_RETURN(Job job, LoadJob(job_file, /*check_data=*/false));
  if (run_dir.empty()) run_dir = "runs/" + job.name;
  run_dir = AbsolutePath(run_dir);
  SHOAL_RETURN_IF_ERROR(MakeDirectories(run_dir + "/checkpoints"));

  TuneAllocatorForTransport();
  std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  std::set<int> listed;
  for (const auto& [index, address] : cluster.workers) listed.insert(index);
  absl::Status result;
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run,
                         TrainingRun::Create({.loop = network.get(),
                                              .network = network.get(),
                                              .job = std::move(job),
                                              .ps_addresses = cluster.PsAddresses(),
                                              .listed_workers = listed,
                                              .run_dir = run_dir,
                                              .coordinator_id = std::random_device()(),
                                              .on_over = [&](const absl::Status& status) {
                                                result = status;
                                                network->Stop();
                                              }}));
  const BindAddress bind = BindAddressOf(cluster.chief_address());
  if (!bind.warning.empty()) LogWarning(bind.warning);
  SHOAL_ASSIGN_OR_RETURN(
      const std::string bound,
      network->Listen(bind.listen, [&](const std::string& method, std::unique_ptr<Stream> stream) {
        return run->Accept(method, std::move(stream));
      }));
  LogInfo("listening at " + bound + ", writing to " + run_dir);
  daemon.OnStopSignal([&](int) { network->Post([&] { run->Stop(); }); });
  run->Start();
  network->Run();
  daemon.OnStopSignal({});
  return result;
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::Daemon daemon(
      "shoal-coordinator", shoal::TaskType::kChief,
      "The chief of a cluster: hands out steps, has checkpoints written, ends the job.");
  std::string job_file, run_dir;
  daemon.settings().AddText("job", &job_file, "The job file (docs/job-file.md)");
  daemon.settings().AddText(
      "run_dir", &run_dir,
      "Directory of checkpoints, history and model, which every ps sees; runs/NAME if not given");
  return daemon.Run(argc, argv, [&] { return shoal::RunCoordinator(daemon, job_file, run_dir); });
}
