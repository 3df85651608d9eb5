#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/metrics/metric_samples.h"
#include "coordinator/run_parts.h"
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
  // `parts` outlives this.
  RunView(const RunParts& parts, Time now) : parts_(parts), now_(now) {}

  RunPhase phase() const;
  proto::StatusReply Status() const;
  // Returns what the run waits for, a line each, for console and status.
  std::vector<std::string> Waiting() const;
  // Returns the requirements on a checkpoint that is requested now, or why there will be none.
  absl::StatusOr<OperatorRequests::Wanted> WantedNow() const;
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

  const RunParts& parts_;
  const Time now_;
};

}  // namespace shoal
