#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/step_plan/round_plan.h"
#include "tests/simulation/simulated/simulated_job.h"

namespace shoal {

// The job that the cluster trains, with the values that its variables must have. All checks share
// it. It also keeps the job of each timeline, because workers may outlive a change of the job.
class TrainedJob {
 public:
  explicit TrainedJob(const SimulatedJob& job) : job_(job), rounds_(job.workload->rounds()) {}
  TrainedJob(const TrainedJob&) = delete;
  TrainedJob& operator=(const TrainedJob&) = delete;

  const Workload& workload() const { return *job_.workload; }
  const ExpectedSums& sums() const { return *job_.sums; }
  // Returns nullopt if each step is an update.
  const std::optional<RoundPlan>& rounds() const { return rounds_; }
  // Returns whether the values of the variables that the optimizer updates are no sums.
  bool sums_in_slot() const { return workload().sums_in != Workload::SumsIn::kValues; }

  // Call when the cluster trains another job from now on.
  void Replace(const SimulatedJob& job);
  // Returns the cut of the former job's model if that job had the same run directory.
  const std::optional<uint64_t>& former_end() const { return former_end_; }

  // Call when a ps has opened a timeline of the current job.
  void AddTimeline(uint64_t timeline) { job_of_[timeline] = job_.workload; }
  // Returns the job of a timeline; null if no ps has opened it.
  const Workload* JobOf(uint64_t timeline) const;

  // Returns the sum at an element of a chunk or tensor. Without slots, the values are the sums.
  float SumOf(const std::vector<std::span<const float>>& slots, std::span<const float> values,
              size_t element) const {
    return slots.empty() ? values[element] : workload().SumAt(slots, element);
  }
  // Returns an error if a buffer of differences among the slots cannot be the sum of as many
  // differences as this number of updates leaves in it.
  absl::Status CheckBuffer(const std::vector<std::span<const float>>& slots,
                           uint64_t updates) const;

 private:
  SimulatedJob job_;
  std::optional<RoundPlan> rounds_;
  std::optional<uint64_t> former_end_;
  std::map<uint64_t, const Workload*> job_of_;  // for each timeline of a ps
};

}  // namespace shoal
