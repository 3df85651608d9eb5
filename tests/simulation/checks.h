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
#include "tests/simulation/simulated_disk.h"
#include "tests/simulation/simulated_job.h"
#include "tests/simulation/simulated_network.h"

namespace shoal {

namespace proto {
class Applied;
class Push;
}  // namespace proto

// The invariants of section 9 of the protocol, and what the promises say of files, checked as the
// simulation goes: after each callback of a task, at each message and at each manifest. What does
// not hold goes to World::Fail.
class Checks : public SimulatedNetwork::Observer {
 public:
  // These outlive this.
  Checks(World* world, SimulatedDisk* disk, const Workload* workload, const ExpectedSums* sums)
      : world_(*world),
        disk_(*disk),
        workload_(workload),
        sums_(sums),
        rounds_(workload->rounds()),
        sums_in_slot_(workload->sums_in != Workload::SumsIn::kValues) {}

  // A ps has run a callback.
  void OnPs(const SimulatedProcess& process, int index, const ParameterServer& server);
  // A coordinator has. `servers` are those that the addresses lead to, null where nobody is.
  void OnCoordinator(const SimulatedProcess& process, const TrainingRun& run,
                     const std::vector<const ParameterServer*>& servers);
  // A ps that was told to leave goes.
  void OnLeft(const SimulatedProcess& process);
  // A worker begins to compute from so many chunks that are there.
  void OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks);
  // A worker computes this job from now on.
  void OnPrepare(const SimulatedProcess& process, const SimulatedJob& job) {
    jobs_[&process] = job;
  }
  // Returns of which cut of this job the parameters are: where nothing says, 0.
  uint64_t OnEvaluate(const SimulatedJob& job, std::span<const float> parameters);
  // Another job takes the place of the one that was trained. What lives on of that is workers.
  void OnChange(const SimulatedJob& job);
  // A manifest or a model has got its name.
  void OnRenamed(const std::string& path);
  // The disk has lost what was not synced.
  void OnPowerLoss();
  // That checkpoint was changed on purpose.
  void OnDamage(const std::string& directory) { damaged_.insert(directory); }
  // The job is said to be done.
  void OnJobDone(const std::string& run_dir);

  // How the job is to end by the results that the run wrote down. A coordinator that is taken over
  // from may lease steps beyond an epoch's end until it hears of that: the epoch's cut then comes
  // after them, and its result is of later values.
  Workload::Ending EndingAsEvaluated() const;
  // Directories of all whole checkpoints, newest first.
  std::vector<StoredCheckpoint> Stored();
  uint64_t total_steps() const { return plan().total_steps(); }

  void OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
              const Message& message) override;
  void OnReceived(SimulatedProcess& receiver, const std::string& sender, const std::string& method,
                  bool by_client, const Message& message) override;
  void OnFinished(SimulatedProcess& server, const std::string& method,
                  const absl::Status& status) override;
  // Lets checks of acknowledgements find the ps by its process.
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
  // What was seen of one life of a ps.
  struct Life {
    int index = 0;
    const ParameterServer* server = nullptr;
    uint64_t promised_term = 0;
    uint64_t timeline = 0;
    std::vector<Chunk> chunks;
    uint64_t pushed = 0;  // timeline of the push that is being handled
    bool may_go = false;  // a Stop has come
  };
  // What a worker's parameters and gradients come from.
  struct Origin {
    uint64_t announced = 0;                            // the timeline that it was told of last
    std::set<std::pair<std::string, uint32_t>> fresh;  // ps and chunks that came in it
    uint64_t timeline = 0;                             // in which the gradient at hand was begun
    uint64_t step = 0;
  };

  StepPlan plan() const { return workload_->plan(); }
  bool cluster_changes() const {
    return std::any_of(workload_->faults.begin(), workload_->faults.end(),
                       [](const Fault& fault) { return fault.kind == Fault::Kind::kRestartAll; });
  }
  // A worker has to do with the timelines of the job that it computes, and no others.
  void CheckJob(const SimulatedProcess& worker, uint64_t timeline, const std::string& does);
  // One coordinator leads the run from its beginning to its end.
  bool coordinator_stays() const;
  // Bounded staleness, of a step that was leased once: whoever lost its lease may push it later.
  void CheckStaleness(const std::string& ps, const proto::Applied& applied);
  // A gradient is of the round that the plan has its step in, and of the version that begins it.
  void CheckRound(const SimulatedProcess& worker, const proto::Push& push);
  void CheckChunk(const SimulatedProcess& process, const VariableStore& store, int chunk);
  // What the sums of a chunk, or of a tensor, are at an element.
  float SumOf(const std::vector<std::span<const float>>& slots, std::span<const float> values,
              size_t element) const {
    return slots.empty() ? values[element] : workload_->SumAt(slots, element);
  }
  // The buffer of differences has as many as the number of updates says.
  void CheckBuffer(const std::string& where, const std::vector<std::span<const float>>& slots,
                   uint64_t updates);
  // What it has applied, and has in of a round.
  void CheckSteps(const SimulatedProcess& process, const AppliedSet& applied, uint64_t version,
                  int chunk);
  void CheckCheckpoint(const std::string& directory);
  // `of_now`: it is of the job that is trained now, not of a shorter one before it.
  void CheckModel(const std::string& directory, bool of_now);

  World& world_;
  SimulatedDisk& disk_;
  const Workload* workload_;  // of the job that is trained now
  const ExpectedSums* sums_;
  std::optional<RoundPlan> rounds_;
  const bool sums_in_slot_;
  std::map<const SimulatedProcess*, Life> servers_;
  std::map<const SimulatedProcess*, Origin> workers_;
  std::map<const SimulatedProcess*, SimulatedJob> jobs_;  // of workers
  std::map<uint64_t, const Workload*> job_of_;            // of each timeline that a ps was in
  // Of each ps index: timelines it has opened, in any life.
  std::map<int, std::set<uint64_t>> opened_;
  // What a coordinator's done set was when it was compared last: base and steps above.
  std::map<const SimulatedProcess*, std::pair<uint64_t, uint64_t>> compared_;
  std::set<std::string> damaged_;
  std::optional<uint64_t> former_end_;  // of a job that was trained in this run directory before
  std::map<std::pair<uint64_t, uint64_t>, int> leases_;  // of each timeline and step
};

}  // namespace shoal
