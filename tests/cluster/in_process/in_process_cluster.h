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
#include "worker/compute/registry/create_model_runner.h"
#include "worker/session/evaluator_session.h"
#include "worker/session/worker_session.h"
#include "worker/step/compute_thread.h"

namespace shoal {

// A whole cluster in this process: coordinator, ps and workers, set up as in the daemons. Each has
// its loop on its own thread. An InProcessHub connects them.
class InProcessCluster {
 public:
  struct Options {
    Job job;
    int ps = 1;
    int workers = 1;
    std::string run_dir;
    std::string backend = "reference";
    // Same meaning as in ComputeThread.
    std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)>
        create_runner = CreateModelRunner;
    InProcessHub::Options network = {};
    // The file system of each ps, by index; other ps use the real one.
    std::vector<FileSystem*> ps_files = {};
  };
  explicit InProcessCluster(Options options);
  ~InProcessCluster();

  void StartCoordinator();
  void StartPs(int index);
  void StartWorker(int index);
  // Replaces an earlier evaluator, as after kill -9.
  void StartEvaluator();
  void StartAll();

  // Asks for an orderly stop.
  void StopCoordinator();
  // Waits until the coordinator has ended and returns its status. Fails the test after a minute.
  absl::Status WaitForCoordinator();
  // The same for all workers: returns how each ended.
  std::vector<WorkerSession::End> WaitForWorkers();
  WorkerSession::End WaitForWorker(int index);
  absl::Status WaitForEvaluator();
  // Requires that the worker has ended.
  const WorkerSession& worker(int index) const { return *workers_[index]->session; }
  absl::Status status_of_worker(int index);

  // Returns the coordinator's status, read on its loop.
  proto::StatusReply Status();
  // Waits until `condition` holds for the status. Returns false after a minute.
  bool WaitForStatus(const std::function<bool(const proto::StatusReply&)>& condition);

  // A step that a worker has finished.
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
