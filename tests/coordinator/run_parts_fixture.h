#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/run_parts.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/coordinator/steps/joined_workers.h"
#include "tests/coordinator/takeover/ps_fleet_fixture.h"

namespace shoal {

// All parts of a run, as TrainingRun makes them, with two ps and the workers of JoinedWorkers. The
// parts call no RunTimeline, WorkerReports or Reconciler: a test makes the one that it tests. The
// SmallJob has epochs of 13 steps.
class RunPartsTest : public PsFleetTest {
 protected:
  static constexpr uint64_t kExamples = 200;
  static constexpr uint64_t kTestExamples = 50;
  static constexpr uint64_t kEpochSteps = 13;

  // Returns a job without a test set and without cuts of every_steps.
  Job MakeJob();
  // Returns the job with its test set.
  Job MakeJob(SmallJob small);
  // Runs until the fleet has adopted this timeline.
  void Adopt(uint64_t timeline, uint64_t base);
  // Makes the parts, which take the fleet and the membership over. Call it once, after Start, Lead
  // or Adopt.
  void MakeParts(Job job);

  std::vector<Wakeup::Cause> TakeCauses();
  // Returns the timeline announced to the worker since the last call, 0 if none was.
  uint64_t Announced(int index);
  // Returns a checkpoint of the open timeline, which need not be on disk.
  StoredCheckpoint Stored(uint64_t step) const;
  // Returns whether a ps has received Stop since the last call.
  bool ToldToStop(int index);
  // A ps says that it leaves.
  void SendDeparting(int index);
  // Returns the message of a status, or "not yet".
  static std::string Message(const std::optional<absl::Status>& status);

  const TemporaryDirectory job_directory_;
  JoinedWorkers workers_{&loop_};
  std::vector<Wakeup::Cause> causes_;  // of the turns
  Wakeup wakeup_{&loop_, [this](Wakeup::Cause cause) { causes_.push_back(cause); }};
  const std::vector<Variable> variables_ = SmallVariables();
  std::vector<std::string> owed_;     // files that are not on disk yet
  std::vector<std::string> waiting_;  // the processes for which the run waits
  bool tls_ = false;                  // set it before MakeParts
  // The end of the run calls this. Set it before MakeParts. Empty: there is no evaluator.
  std::function<void(const std::string&)> dismiss_evaluator_;
  std::optional<absl::Status> outcome_;  // the run ends with it, once all files are on disk
  std::optional<absl::Status> over_;     // the run has ended with it
  std::optional<RunParts> parts_;

 private:
  void MakeSteps();
  void MakeEvaluator();
  void MakeCheckpointer();
  void MakeEnd();
};

}  // namespace shoal
