#pragma once

#include <string>

#include "tests/simulation/checks/checkpoint_checks.h"
#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/world.h"

namespace shoal {

// Checks the results of the job: its last checkpoint, the best one, the saved model, and that an
// epoch uses each example once.
class EndingChecks {
 public:
  // All of these must outlive this.
  EndingChecks(World* world, SimulatedDisk* disk, const TrainedJob* job,
               const CheckpointChecks* checkpoints)
      : world_(*world), disk_(*disk), job_(*job), checkpoints_(*checkpoints) {}

  // Call when the disk has lost its unsynced data. Checks the saved model, if there is one.
  void OnPowerLoss() const;
  // Call when the job is reported as done, after a power loss.
  void OnJobDone(const std::string& run_dir) const;

 private:
  // Returns the end of the job according to the evaluation results of the run. A coordinator that
  // is being replaced may lease steps beyond an epoch's end until it learns of it. The epoch's cut
  // then comes after those steps, and its result belongs to later values.
  Workload::Ending EndingAsEvaluated() const;
  void CheckCheckpoints() const;
  // `of_now`: the model belongs to the current job, not to a shorter one before it.
  void CheckModel(const std::string& directory, bool of_now) const;
  void CheckExamples() const;

  World& world_;
  SimulatedDisk& disk_;
  const TrainedJob& job_;
  const CheckpointChecks& checkpoints_;
};

}  // namespace shoal
