#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/simulated/simulated_job.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

namespace proto {
class ChunkValues;
class Push;
class WorkerOrder;
}  // namespace proto

// Checks the promises of each worker: it trains the job that it has prepared, on parameters of its
// timeline, and pushes each gradient with the step, timeline and round in which it began. Its
// evaluations are of one cut.
class WorkerChecks {
 public:
  // Both must outlive this.
  WorkerChecks(World* world, const TrainedJob* job) : world_(*world), job_(*job) {}

  void Forget(const SimulatedProcess* process);

  // Call when a worker starts to compute this job.
  void OnPrepare(const SimulatedProcess& process, const SimulatedJob& job) {
    jobs_[&process] = job;
  }
  // Call when a worker begins to compute with `chunks` arrived chunks.
  void OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks);
  // Returns the cut of the parameters of this job; 0 if the parameters do not show it.
  uint64_t OnEvaluate(const SimulatedJob& job, std::span<const float> parameters);
  // Call when a worker receives an order from its coordinator.
  void OnOrder(const SimulatedProcess& process, const proto::WorkerOrder& order);
  // Call when a worker receives values from a ps.
  void OnValues(const SimulatedProcess& process, const std::string& ps,
                const proto::ChunkValues& values);
  // Call when a worker pushes.
  void OnPush(const SimulatedProcess& process, const proto::Push& push);

 private:
  // The origin of a worker's parameters and gradients.
  struct Origin {
    uint64_t announced = 0;                            // the newest timeline in its orders
    std::set<std::pair<std::string, uint32_t>> fresh;  // ps and chunks that arrived in it
    uint64_t timeline = 0;                             // of the current gradient, at its start
    uint64_t step = 0;
  };

  // Checks that a worker uses only timelines of the job that it computes.
  void CheckJob(const SimulatedProcess& process, uint64_t timeline, const std::string& does);
  // Checks that a gradient belongs to the round of its step in the plan, and to the version at the
  // start of that round.
  void CheckRound(const SimulatedProcess& process, const proto::Push& push);

  World& world_;
  const TrainedJob& job_;
  std::map<const SimulatedProcess*, Origin> origins_;
  std::map<const SimulatedProcess*, SimulatedJob> jobs_;
};

}  // namespace shoal
