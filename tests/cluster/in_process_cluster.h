#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/job/job.h"
#include "coordinator/training_run.h"
#include "ps/parameter_server.h"
#include "tests/fakes/in_process/in_process_network.h"
#include "worker/session/evaluator_session.h"
#include "worker/session/worker_session.h"
#include "worker/step/compute_thread.h"

namespace shoal {

// A whole cluster in this process: coordinator, ps and workers as the daemons run them, each with
// its loop on a thread, connected by an InProcessHub.
class InProcessCluster {
 public:
  struct Options {
    Job job;
    int ps = 1;
    int workers = 1;
    std::string run_dir;
    std::string backend = "reference";
    // As ComputeThread's.
    std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)>
        create_runner = ModelRunner::Create;
    InProcessHub::Options network = {};
    // What the ps see of the disk, by index; those beyond see all of it.
    std::vector<FileSystem*> ps_files = {};
  };
  explicit InProcessCluster(Options options);
  ~InProcessCluster();

  void StartCoordinator();
  void StartPs(int index);
  void StartWorker(int index);
  // In the place of one that was started before, as after kill -9.
  void StartEvaluator();
  void StartAll();

  // Asks for an orderly stop.
  void StopCoordinator();
  // Waits until the coordinator is over; its status. A minute without that is a failure.
  absl::Status WaitForCoordinator();
  // The same for every worker: how each ended.
  std::vector<WorkerSession::End> WaitForWorkers();
  WorkerSession::End WaitForWorker(int index);
  absl::Status WaitForEvaluator();
  // Of a worker that is over.
  const WorkerSession& worker(int index) const { return *workers_[index]->session; }
  absl::Status status_of_worker(int index);

  // Runs `function` on the coordinator's loop and returns its result.
  proto::StatusReply Status();
  // Waits until `condition` holds for the status, for a minute at most; false when it never did.
  bool WaitForStatus(const std::function<bool(const proto::StatusReply&)>& condition);

  // Every (step, examples) that a worker has finished, in the order of finishing.
  struct FinishedStep {
    int worker = 0;
    uint64_t timeline = 0;
    uint64_t step = 0;
  };
  std::vector<FinishedStep> finished_steps();

 private:
  struct Task {
    std::unique_ptr<InProcessHub::Node> node;
    std::unique_ptr<TrainingRun> run;
    std::unique_ptr<ParameterServer> server;
    std::unique_ptr<ComputeThread> computer;
    std::unique_ptr<WorkerSession> session;
    std::unique_ptr<EvaluatorSession> evaluator;
    std::thread thread;
    bool over = false;    // guarded by the cluster's mutex_
    absl::Status status;  // likewise
    WorkerSession::End end = WorkerSession::End::kFailed;
    ~Task();
  };
  bool WaitUntilOver(Task& task);

  const Options options_;
  InProcessHub hub_{options_.network};
  Mutex mutex_;
  CondVar changed_;
  std::vector<FinishedStep> finished_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Task> coordinator_;
  std::vector<std::unique_ptr<Task>> ps_;
  std::vector<std::unique_ptr<Task>> workers_;
  std::unique_ptr<Task> evaluator_;
  uint64_t evaluators_ = 0;
};

}  // namespace shoal
