#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/training_run.h"
#include "ps/parameter_server.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/in_process/one_loop_network.h"
#include "tests/fuzz/sequences/fuzz_computer.h"
#include "tests/fuzz/sequences/fuzz_job.h"
#include "tests/fuzz/sequences/mutate_message.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "worker/session/evaluator_session.h"
#include "worker/session/worker_session.h"

namespace shoal {

// A cluster that trains a FuzzJob: the real coordinator, ps and worker on one thread, with a clock
// that only Advance() moves, a disk in memory, and room in its network for an attacker. Each fuzz
// input gets a new one.
class FuzzCluster {
 public:
  static constexpr char kChief[] = "chief";
  static constexpr char kRunDirectory[] = "/run";

  struct Options {
    int ps = 1;
    // What the peer of this target may do by its role.
    bool may_change_values = false;  // it pushes gradients, or is a ps
    bool may_end_run = false;        // so that the coordinator gives up, and says why
    bool may_load = false;           // a ps, with a checkpoint that the job does not have
  };
  FuzzCluster(uint8_t variant, Options options);
  ~FuzzCluster();

  // Starts ps, coordinator and worker, and lets them train for some steps.
  void StartTraining();
  void StartCoordinator();
  void StartPs(int index);
  void StartWorker();
  // Starts an evaluator, which is not in the cluster spec: nobody misses it.
  void StartEvaluator();
  // Ends the coordinator, like a crash.
  void KillCoordinator();
  FakeLoop& loop() { return loop_; }
  OneLoopHub& hub() { return hub_; }
  const FuzzJob& job() const { return job_; }
  const ShardMap& shard_map() const { return shard_map_; }
  static std::string PsName(int index);
  const ParameterServer& ps(int index) const { return *ps_[index]->server; }
  uint64_t ps_incarnation(int index) const { return ps_[index]->incarnation; }
  // Returns what a peer can know now.
  KnownValues Known();

  // Checks what holds at any time: each ps counts each step once, and none that the job lacks.
  void CheckStores() const;
  // The attack is over. Starts again whoever has ended before the job, as a supervisor and its
  // operator do, and checks that the job comes to its end, with the values that its steps make.
  void FinishJob();

 private:
  struct Task {
    std::unique_ptr<OneLoopHub::Node> node;  // outlives what uses it
    std::unique_ptr<TrainingRun> run;
    uint64_t incarnation = 0;
    std::unique_ptr<ParameterServer> server;
    std::unique_ptr<FuzzComputer> computer;
    std::unique_ptr<WorkerSession> session;
    std::unique_ptr<EvaluatorSession> evaluator;
    std::optional<Time> over_at;  // set once it has ended
    absl::Status status;
    ~Task();
  };

  // Notes the end of a task. Tasks' callbacks call it.
  void End(Task* task, const absl::Status& status) const;
  // Whether a supervisor starts the task (again) now.
  bool IsDue(const std::unique_ptr<Task>& task) const;
  void CheckStore(const VariableStore& store) const;
  void CheckModel();
  // Starts again what has ended too early. Returns how many tasks these were.
  int StartEnded();
  std::string Describe() const;

  const FuzzJob& job_;
  const Options options_;
  const ShardMap shard_map_;
  SimulatedDisk disk_;
  FakeLoop loop_;
  OneLoopHub hub_{&loop_};
  uint32_t started_ = 0;  // tasks so far, for their numbers
  std::unique_ptr<Task> coordinator_, worker_, evaluator_;
  std::vector<std::unique_ptr<Task>> ps_;
};

}  // namespace shoal
