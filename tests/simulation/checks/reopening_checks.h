#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "coordinator/steps/membership.h"
#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

namespace proto {
class WorkerOrder;
class WorkerReport;
}  // namespace proto

// Checks that new certificates cost nothing. If they are the only faults, no step is computed
// twice, unless the strategy speculates, and no worker counts as lost before the job's end.
class ReopeningChecks {
 public:
  // Both must outlive this.
  ReopeningChecks(World* world, const TrainedJob* job) : world_(*world), job_(*job) {}

  // Call when a worker begins to compute with `chunks` arrived chunks, and again when there are
  // more.
  void OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks);
  // Call when a worker sends a report to its coordinator.
  void OnReport(const proto::WorkerReport& report);
  // Call when a coordinator sends an order.
  void OnOrder(const proto::WorkerOrder& order);
  // Call after each callback of a coordinator.
  void AfterCallback(const std::map<int, Membership::Record>& workers);

 private:
  bool checks() const { return !over_ && job_.workload().OnlyCertificates(); }

  // A step in a computer, and how much of its parameters it has.
  struct Training {
    std::optional<uint64_t> step;
    size_t chunks = 0;
  };

  World& world_;
  const TrainedJob& job_;
  std::map<const SimulatedProcess*, Training> training_;
  std::set<uint64_t> begun_;
  // The job is done. Or a worker has lost the timeline: an answer of a ps from before its load came
  // late. The worker then begins its steps anew, with or without certificates.
  bool over_ = false;
};

}  // namespace shoal
