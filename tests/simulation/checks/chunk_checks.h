#pragma once

#include <cstdint>

#include "ps/store/applied_set.h"
#include "ps/store/variable_store.h"
#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

// Checks exactly-once: a chunk is the sum of exactly the steps that it lists as applied.
class ChunkChecks {
 public:
  // Both must outlive this.
  ChunkChecks(World* world, const TrainedJob* job) : world_(*world), job_(*job) {}

  // Checks the values and the applied steps of the chunk with this index, of the ps in `process`.
  void Check(const SimulatedProcess& process, const VariableStore& store, int index) const;

 private:
  // Checks that the applied steps make as many updates as the chunk has had: in rounds, whole
  // rounds and some steps of the next one.
  void CheckSteps(const SimulatedProcess& process, const AppliedSet& applied, uint64_t version,
                  int index) const;

  World& world_;
  const TrainedJob& job_;
};

}  // namespace shoal
