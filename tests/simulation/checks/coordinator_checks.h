#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "coordinator/training_run.h"
#include "ps/parameter_server.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

// Checks that each ps in a coordinator's timeline has applied the steps that are done there.
class CoordinatorChecks {
 public:
  // `world` must outlive this.
  explicit CoordinatorChecks(World* world) : world_(*world) {}

  // Call after each callback of a coordinator. `servers` are the current ps.
  void AfterCallback(const SimulatedProcess& process, const TrainingRun& run,
                     const std::vector<const ParameterServer*>& servers);
  void Forget(const SimulatedProcess* process) { compared_.erase(process); }

 private:
  World& world_;
  // The coordinator's done set at the last comparison: base, and number of steps above.
  std::map<const SimulatedProcess*, std::pair<uint64_t, uint64_t>> compared_;
};

}  // namespace shoal
