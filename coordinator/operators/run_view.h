#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/metrics/metric_samples.h"
#include "common/optimizer/optimizer.h"
#include "common/run/run_paths.h"
#include "common/step_plan/step_plan.h"
#include "coordinator/cuts/checkpointer.h"
#include "coordinator/cuts/cut_plan.h"
#include "coordinator/cuts/drain_checkpoint.h"
#include "coordinator/evaluator/checkpoint_evaluation.h"
#include "coordinator/operators/operator_requests.h"
#include "coordinator/run/progress.h"
#include "coordinator/run/run_history.h"
#include "coordinator/run/shutdown.h"
#include "coordinator/steps/membership.h"
#include "coordinator/steps/step_scheduler.h"
#include "coordinator/takeover/ps_fleet.h"
#include "coordinator/takeover/run_lock.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The phase of a run, as shown to people.
enum class RunPhase { kClaiming, kLoading, kTraining, kStopping, kFinished, kFailed };
inline constexpr RunPhase kRunPhases[] = {RunPhase::kClaiming, RunPhase::kLoading,
                                          RunPhase::kTraining, RunPhase::kStopping,
                                          RunPhase::kFinished, RunPhase::kFailed};
// "claiming", "loading", "training", "stopping", "finished", "failed".
const char* PhaseName(RunPhase phase);

// A view of a run at one moment, for people and their programs. Reads the run's parts and never
// changes them. Loop thread only.
class RunView {
 public:
  struct Counters {
    uint64_t timelines_opened = 0;
    uint64_t steps_done = 0;
    uint64_t examples = 0;
  };
  struct Parts {
    Time now{};
    Time started{};
    uint32_t job_fingerprint = 0;
    uint64_t timeline = 0;        // the open one, or 0
    bool awaits_results = false;  // the next epoch begins only after the decision to go on
    Counters counters;            // since the start
    const Job* job = nullptr;     // all of these outlive this
    const RunPaths* paths = nullptr;
    const std::string* chief_address = nullptr;
    const std::vector<std::string>* ps_addresses = nullptr;
    const Optimizer* optimizer = nullptr;           // the job's, for the learning rate
    const std::optional<StepPlan>* plan = nullptr;  // once the examples are counted
    const std::optional<CutPlan>* cuts = nullptr;   // once a timeline was open
    const RunLock* lease = nullptr;
    const PsFleet* fleet = nullptr;
    const Membership* membership = nullptr;
    const StepScheduler* handout = nullptr;
    const Progress* progress = nullptr;
    const RunHistory* history = nullptr;
    const CheckpointEvaluation* evaluator = nullptr;
    const Checkpointer* checkpointer = nullptr;
    const DrainCheckpoint* closing = nullptr;
    const Shutdown* ending = nullptr;
    const OperatorRequests* requests = nullptr;
  };
  explicit RunView(const Parts& parts) : parts_(parts) {}

  RunPhase phase() const;
  proto::StatusReply Status() const;
  // Returns what the run waits for, a line each, for console and status.
  std::vector<std::string> Waiting() const;
  // Adds the metrics of the run for Prometheus.
  void Collect(MetricSamples* out) const;

 private:
  // Returns the epoch of the first step that is not done; none before the examples are counted.
  std::optional<uint64_t> RunningEpoch() const;
  void FillProgress(proto::StatusReply* reply) const;
  void FillCheckpoint(proto::StatusReply* reply) const;
  const char* StateOfPs(const PsFleet::Peer& peer) const;
  void FillTasks(proto::StatusReply* reply) const;
  void FillEvaluator(proto::StatusReply* reply) const;
  // Describes the evaluator, its state and its current work, for a line of Waiting().
  std::string EvaluatorsPart() const;
  bool CutIsComing(Time now) const;
  const Worker* HolderOfOldestStep() const;
  std::string OldestStep() const;
  uint64_t UpdatesDone() const;
  void CollectJob(MetricSamples* out) const;
  void CollectProgress(MetricSamples* out) const;
  void CollectTasks(MetricSamples* out) const;
  void CollectCheckpoints(MetricSamples* out) const;

  const Parts parts_;
};

}  // namespace shoal
