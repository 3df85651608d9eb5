#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/checkpoint_store.h"
#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/world.h"

namespace shoal {

class CheckpointReader;

// Checks that a checkpoint with a manifest is whole, and the sum of exactly the steps below its
// cut. Ignores checkpoints that were damaged on purpose.
class CheckpointChecks {
 public:
  // All of these must outlive this.
  CheckpointChecks(World* world, SimulatedDisk* disk, const TrainedJob* job)
      : world_(*world), disk_(*disk), job_(*job) {}

  // Call when the disk has renamed something to this path. Checks the checkpoint of a manifest.
  void OnRenamed(const std::string& path);
  // Call when a checkpoint was damaged on purpose.
  void OnDamage(const std::string& directory) { damaged_.insert(directory); }
  bool any_damaged() const { return !damaged_.empty(); }

  // Returns all intact checkpoints of the job, newest first.
  std::vector<StoredCheckpoint> Stored() const;
  // Checks all of these.
  void CheckStored() const;

 private:
  void Check(const std::string& directory) const;
  // Checks the sums of the variable with this index.
  void CheckVariable(const std::string& directory, const CheckpointReader& reader, int index) const;

  World& world_;
  SimulatedDisk& disk_;
  const TrainedJob& job_;
  std::set<std::string> damaged_;
};

}  // namespace shoal
