#pragma once

#include <string>

#include "tests/simulation/checks/checkpoint_checks.h"
#include "tests/simulation/checks/coordinator_checks.h"
#include "tests/simulation/checks/ending_checks.h"
#include "tests/simulation/checks/ps_checks.h"
#include "tests/simulation/checks/reopening_checks.h"
#include "tests/simulation/checks/staleness_checks.h"
#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/checks/worker_checks.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/simulated/simulated_job.h"
#include "tests/simulation/simulated/simulated_network.h"
#include "tests/simulation/world.h"

namespace shoal {

// Checks the invariants of section 9 of the protocol and the promises about files while the
// simulation runs: after each callback of a task, at each message and at each manifest. One part
// for each kind of task, and for each kind of result. Reports violations to World::Fail.
class Checks : public SimulatedNetwork::Observer {
 public:
  // `job` is the first one. All of these must outlive this, as the workload and sums of every job.
  Checks(World* world, SimulatedDisk* disk, const SimulatedJob& job);
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  // The simulation reports the events of a single part to that part.
  PsChecks& ps() { return ps_; }
  CoordinatorChecks& coordinator() { return coordinator_; }
  WorkerChecks& workers() { return workers_; }
  ReopeningChecks& reopening() { return reopening_; }
  CheckpointChecks& checkpoints() { return checkpoints_; }

  // Call when a process of any task has ended.
  void Forget(const SimulatedProcess* process);
  // Call when another job replaces the trained one. Of the former cluster, only workers remain.
  void OnChange(const SimulatedJob& job) { job_.Replace(job); }
  // Call when the disk has lost its unsynced data.
  void OnPowerLoss();
  // Call when the job is reported as done. The disk loses its unsynced data.
  void OnJobDone(const std::string& run_dir);

  void OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
              const Message& message) override;
  void OnReceived(SimulatedProcess& receiver, const std::string& sender, const std::string& method,
                  bool by_client, const Message& message) override;
  void OnFinished(SimulatedProcess& server, const std::string& method,
                  const absl::Status& status) override;

 private:
  World& world_;
  SimulatedDisk& disk_;
  TrainedJob job_;
  CheckpointChecks checkpoints_;
  PsChecks ps_;
  CoordinatorChecks coordinator_;
  WorkerChecks workers_;
  StalenessChecks staleness_;
  ReopeningChecks reopening_;
  const EndingChecks ending_;
};

}  // namespace shoal
