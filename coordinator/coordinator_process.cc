#include "coordinator/coordinator_process.h"

#include <filesystem>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/utf8.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/daemon/process/process_mark.h"
#include "common/files/durable_file.h"
#include "common/job/job.h"
#include "common/monitoring/start_monitoring.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/run/checkpoint_job.h"
#include "common/run/run_id.h"
#include "common/run/run_outcome.h"
#include "common/run/run_paths.h"
#include "coordinator/takeover/run_lock.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

// Adds the metrics of the disk of the run directory. May be slow on a network file system.
void CollectDisk(const std::string& run_dir, MetricSamples* out) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(run_dir, error);
  if (error) return;
  out->Add("shoal_disk_free_bytes", static_cast<double>(space.available));
  out->Add("shoal_disk_size_bytes", static_cast<double>(space.capacity));
}

// Takes the strategy that the run was begun with from its checkpoints. The cluster spec may list
// another number of workers since.
void ResumeStrategy(const std::string& run_dir, Job* job) {
  const auto stored = CheckpointStore(RunPaths{run_dir}.checkpoints()).List(nullptr);
  if (stored.ok()) TakeResolvedFrom(*stored, job);
}

// Writes the coordinator's address for `shoal status --run_dir` and similar tools, and removes the
// outcome of an earlier end.
void WriteAddress(const std::string& run_dir, const std::string& address, EventLoop* loop) {
  auto written = std::make_shared<absl::Status>();
  loop->Offload(
      Lane::kFiles,
      [paths = RunPaths{run_dir}, address, written] {
        *written = ReplaceFile(paths.coordinator_address(), address + "\n");
        written->Update(RemoveRunOutcome(paths));
      },
      [written] {
        if (!written->ok()) LogWarning(std::string(written->message()));
      });
}

// Reads or makes the id of the run. If the disk takes no file, the id is lost with this process.
// The ps then reject a successor as another run's until they have missed this coordinator.
std::string RunIdOf(const std::string& run_dir) {
  const absl::StatusOr<std::string> id =
      ReadOrMakeRunId(RunPaths{run_dir}.run_id(), RealFileSystem());
  if (id.ok()) return *id;
  LogWarning(absl::StrCat("the id of the run: ", std::string(id.status().message()),
                          "; the job continues with an id that only this process knows"));
  return DrawRunId();
}

// Takes the columns of the training set from the run's newest checkpoint. If the data are on other
// machines, the coordinator has no other source for them.
void TakeColumnsOfRun(const std::string& run_dir, Job* job) {
  const auto stored = CheckpointStore(RunPaths{run_dir}.checkpoints()).List(nullptr);
  if (!stored.ok() || stored->empty()) return;
  const absl::StatusOr<Job> run = JobOf(stored->front());
  if (run.ok() && TakeColumnsOf(*run, job))
    LogInfo("the job names no columns of the training set: using those of the run");
}

}  // namespace

absl::Status RunCoordinator(Daemon& daemon, const std::string& job_file, std::string run_dir,
                            bool take_over) {
  SHOAL_ASSIGN_OR_RETURN(const ClusterSpec cluster, daemon.ReadClusterSpec());
  if (job_file.empty()) {
    return absl::InvalidArgumentError(
        "no job: neither the flag --job=FILE nor the environment variable SHOAL_JOB is set");
  }
  SHOAL_ASSIGN_OR_RETURN(Job job, LoadJob(job_file, /*check_data=*/false));
  run_dir = AbsolutePath(RunDirectoryOf(run_dir, job.name));
  SHOAL_RETURN_IF_ERROR(CheckUtf8Path(run_dir));
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls,
                         daemon.OpenTls({Role::kCoordinator}));
  SHOAL_RETURN_IF_ERROR(MakeRunDirectory(run_dir));
  SHOAL_RETURN_IF_ERROR(MakeDirectories(RunPaths{run_dir}.checkpoints()));
  if (!RealFileSystem()->SyncsDirectories(run_dir)) {
    LogWarning(
        absl::StrCat(run_dir,
                     " is on a file system that does not sync directories: after a power loss "
                     "the newest checkpoints may be missing"));
  }
  ResumeStrategy(run_dir, &job);
  TakeColumnsOfRun(run_dir, &job);
  std::unique_ptr<GrpcNetwork> network =
      GrpcNetwork::Create({.tls = tls, .warn = [](const std::string& what) { LogWarning(what); }});
  EventLoop* const loop = network->loop();
  absl::Status result;
  const auto on_over = [&](const absl::Status& status) {
    result = status;
    daemon.Ending(result);
    loop->Stop();
  };
  TrainingRun::Options options{
      .loop = loop,
      .network = network.get(),
      .job = std::move(job),
      .coordinator_address = cluster.coordinator_address().ToString(),
      .tls = tls != nullptr,
      .ps_addresses = cluster.PsAddresses(),
      .listed_workers = cluster.WorkerIndices(),
      .lists_evaluator = !cluster.evaluator.empty(),
      .run_dir = run_dir,
      .coordinator_id = std::random_device()(),
      .holder = ThisProcess(),
      .run_id = RunIdOf(run_dir),
      .take_over = take_over,
      .is_gone = IsProcessGone,
      .on_lead = [run_dir, address = cluster.coordinator_address().ToString(),
                  loop] { WriteAddress(run_dir, address, loop); },
      .on_over = on_over};
  SHOAL_ASSIGN_OR_RETURN(const auto run, TrainingRun::Create(std::move(options)));
  LogInfo("writing to " + run_dir);
  const auto accept = [&run](const std::string& method, std::unique_ptr<Stream> stream) {
    return run->Accept(method, std::move(stream));
  };
  SHOAL_RETURN_IF_ERROR(daemon.Listen(cluster.coordinator_address(), network.get(), accept));
  SHOAL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Monitoring> monitoring,
      StartMonitoring(
          daemon, cluster.coordinator_address(), network.get(),
          {.collect = [&run](MetricSamples* out) { run->Collect(out); },
           .check_ready = [&run] { return run->CheckReady(); },
           .collect_off_loop = [run_dir](MetricSamples* out) { CollectDisk(run_dir, out); }}));
  daemon.OnStopSignal([&](int count) {
    loop->Post([&, count] {
      if (count == 1) return run->Stop();
      // A second signal does not wait for a ps that may be gone for good.
      LogWarning("a second signal: ending without the checkpoint of the last steps");
      on_over(absl::CancelledError("stopped by a second signal"));
    });
  });
  run->Start();
  daemon.Serving(loop);
  network->Run();
  daemon.OnStopSignal({});
  return result;
}

}  // namespace shoal
