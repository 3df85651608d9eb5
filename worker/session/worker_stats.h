#pragma once

#include <array>
#include <cstdint>

#include "common/log/logging.h"
#include "common/metrics/histogram.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/event_loop.h"
#include "worker/step/step_computer.h"

namespace shoal {

// A worker's stats: steps, and where its time went. Plain numbers of the loop's thread.
class WorkerStats {
 public:
  enum Phase { kInputWait, kPull, kCompute, kPush, kEvaluate, kIdle, kPhases };

  // Adds `time` to a phase.
  void AddTime(Phase phase, Time time) { phase_seconds_[phase] += ToSeconds(time); }
  // Counts a step that took `took`. The outcome has the times for input, compute and parameter
  // waits; the rest counts as push.
  void StepDone(const BatchOutcome& outcome, Time took) {
    const Time waited = std::chrono::microseconds(outcome.input_wait_us);
    const Time pulled = std::chrono::microseconds(outcome.parameter_wait_us);
    const Time computed = std::chrono::microseconds(outcome.compute_us);
    AddTime(kInputWait, waited);
    AddTime(kPull, pulled);
    AddTime(kCompute, computed);
    if (const Time own = waited + pulled + computed; took > own) AddTime(kPush, took - own);
    step_seconds_.Observe(ToSeconds(took));
    ++steps_;
    examples_ += outcome.examples;
    overflows_ += outcome.overflows;
    loss_scale_ = outcome.loss_scale;
    batches_ready_ = outcome.batches_ready;
  }

  // Adds the samples of all stats.
  void Collect(MetricSamples* out) const;
  // For the log: the number of steps, and the milliseconds per step, in total and by phase,
  // including the time between steps. Empty if there was no step.
  LogFields PerStep() const;

 private:
  std::array<double, kPhases> phase_seconds_ = {};
  Histogram step_seconds_{"shoal_worker_step_seconds"};
  uint64_t steps_ = 0;
  uint64_t examples_ = 0;
  uint64_t overflows_ = 0;
  double loss_scale_ = 0;
  uint64_t batches_ready_ = 0;
};

}  // namespace shoal
