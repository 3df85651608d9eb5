#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "coordinator/training_run.h"
#include "ps/parameter_server.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/simulated/simulated_job.h"
#include "tests/simulation/simulated/simulated_network.h"

namespace shoal {

namespace proto {
class Applied;
class Push;
}  // namespace proto

// Checks the invariants of section 9 of the protocol and the promises about files while the
// simulation runs: after each callback of a task, at each message and at each manifest. Reports
// violations to World::Fail.
class Checks : public SimulatedNetwork::Observer {
 public:
  // All of these must outlive this.
  Checks(World* world, SimulatedDisk* disk, const Workload* workload, const ExpectedSums* sums)
      : world_(*world),
        disk_(*disk),
        workload_(workload),
        sums_(sums),
        rounds_(workload->rounds()),
        sums_in_slot_(workload->sums_in != Workload::SumsIn::kValues) {}

  // Call after a callback of a ps.
  void OnPs(const SimulatedProcess& process, int index, const ParameterServer& server);
  // Call after a callback of a coordinator. `servers` are the ps at the addresses, null if there is
  // none.
  void OnCoordinator(const SimulatedProcess& process, const TrainingRun& run,
                     const std::vector<const ParameterServer*>& servers);
  // Call when a ps leaves after it was told to.
  void OnLeft(const SimulatedProcess& process);
  // Call when a worker begins to compute with `chunks` arrived chunks.
  void OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks);
  // Call when a worker starts to compute this job.
  void OnPrepare(const SimulatedProcess& process, const SimulatedJob& job) {
    jobs_[&process] = job;
  }
  // Returns the cut of the parameters of this job; 0 if the parameters do not show it.
  uint64_t OnEvaluate(const SimulatedJob& job, std::span<const float> parameters);
  // Call when another job replaces the trained one. Of the former cluster, only workers remain.
  void OnChange(const SimulatedJob& job);
  // Call when a manifest or a model has been renamed to its final name.
  void OnRenamed(const std::string& path);
  // Call when the disk has lost its unsynced data.
  void OnPowerLoss();
  // Call when a checkpoint was damaged on purpose.
  void OnDamage(const std::string& directory) { damaged_.insert(directory); }
  // Call when the job is reported as done.
  void OnJobDone(const std::string& run_dir);

  // Returns the end of the job according to the evaluation results of the run. A coordinator that
  // is being replaced may lease steps beyond an epoch's end until it learns of it. The epoch's cut
  // then comes after those steps, and its result belongs to later values.
  Workload::Ending EndingAsEvaluated() const;
  // Returns all intact checkpoints, newest first.
  std::vector<StoredCheckpoint> Stored();
  uint64_t total_steps() const { return plan().total_steps(); }

  void OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
              const Message& message) override;
  void OnReceived(SimulatedProcess& receiver, const std::string& sender, const std::string& method,
                  bool by_client, const Message& message) override;
  void OnFinished(SimulatedProcess& server, const std::string& method,
                  const absl::Status& status) override;
  // Registers a ps, so that checks of acknowledgements find it by its process.
  void Register(const SimulatedProcess* process, int index, const ParameterServer* server) {
    servers_[process] = {index, server};
  }
  void Forget(const SimulatedProcess* process);

 private:
  struct Chunk {
    uint64_t version = 0;
    uint64_t base = 0;
    uint64_t count = 0;
  };
  // The observations of one life of a ps.
  struct Life {
    int index = 0;
    const ParameterServer* server = nullptr;
    uint64_t promised_term = 0;
    uint64_t timeline = 0;
    std::vector<Chunk> chunks;
    uint64_t pushed = 0;  // timeline of the current push
    bool may_go = false;  // a Stop has arrived
  };
  // The origin of a worker's parameters and gradients.
  struct Origin {
    uint64_t announced = 0;                            // the newest timeline in its orders
    std::set<std::pair<std::string, uint32_t>> fresh;  // ps and chunks that arrived in it
    uint64_t timeline = 0;                             // of the current gradient, at its start
    uint64_t step = 0;
  };

  StepPlan plan() const { return workload_->plan(); }
  bool cluster_changes() const {
    return std::any_of(workload_->faults.begin(), workload_->faults.end(),
                       [](const Fault& fault) { return fault.kind == Fault::Kind::kRestartAll; });
  }
  // Checks that a worker uses only timelines of the job that it computes.
  void CheckJob(const SimulatedProcess& worker, uint64_t timeline, const std::string& does);
  // Returns whether one coordinator leads the run from beginning to end.
  bool coordinator_stays() const;
  // Checks the bounded staleness of a step that was leased once. After a lost lease, the former
  // holder may push the step later.
  void CheckStaleness(const std::string& ps, const proto::Applied& applied);
  // Checks that a gradient belongs to the round of its step in the plan, and to the version at the
  // start of that round.
  void CheckRound(const SimulatedProcess& worker, const proto::Push& push);
  void CheckChunk(const SimulatedProcess& process, const VariableStore& store, int chunk);
  // Returns the sum at an element of a chunk or tensor.
  float SumOf(const std::vector<std::span<const float>>& slots, std::span<const float> values,
              size_t element) const {
    return slots.empty() ? values[element] : workload_->SumAt(slots, element);
  }
  // Checks that the buffer contains as many differences as the number of updates implies.
  void CheckBuffer(const std::string& where, const std::vector<std::span<const float>>& slots,
                   uint64_t updates);
  // Checks the applied steps, and the steps of an incomplete round.
  void CheckSteps(const SimulatedProcess& process, const AppliedSet& applied, uint64_t version,
                  int chunk);
  void CheckCheckpoint(const std::string& directory);
  // `of_now`: the model belongs to the current job, not to a shorter one before it.
  void CheckModel(const std::string& directory, bool of_now);

  World& world_;
  SimulatedDisk& disk_;
  const Workload* workload_;  // of the current job
  const ExpectedSums* sums_;
  std::optional<RoundPlan> rounds_;
  const bool sums_in_slot_;
  std::map<const SimulatedProcess*, Life> servers_;
  std::map<const SimulatedProcess*, Origin> workers_;
  std::map<const SimulatedProcess*, SimulatedJob> jobs_;  // of workers
  std::map<uint64_t, const Workload*> job_of_;            // for each timeline of a ps
  // For each ps index: the timelines that it has opened in any life.
  std::map<int, std::set<uint64_t>> opened_;
  // The coordinator's done set at the last comparison: base, and number of steps above.
  std::map<const SimulatedProcess*, std::pair<uint64_t, uint64_t>> compared_;
  std::set<std::string> damaged_;
  std::optional<uint64_t> former_end_;                   // of an earlier job in this run directory
  std::map<std::pair<uint64_t, uint64_t>, int> leases_;  // for each timeline and step
};

}  // namespace shoal
