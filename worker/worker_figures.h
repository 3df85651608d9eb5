#pragma once

#include <array>
#include <cstdint>

#include "common/daemon/logging.h"
#include "common/metrics/histogram.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/event_loop.h"
#include "worker/step_computer.h"

namespace shoal {

// What a worker counts: steps, and where its time went. Plain numbers of the loop's thread.
class WorkerFigures {
 public:
  enum Phase { kInputWait, kPull, kCompute, kPush, kEvaluate, kIdle, kPhases };

  void Spent(Phase phase, Time time) { phase_seconds_[phase] += ToSeconds(time); }
  // A step is over after `took`, of which input, compute and waits for parameters are the
  // computer's.
  void StepDone(const BatchOutcome& outcome, Time took) {
    const Time waited = std::chrono::microseconds(outcome.input_wait_us);
    const Time pulled = std::chrono::microseconds(outcome.parameter_wait_us);
    const Time computed = std::chrono::microseconds(outcome.compute_us);
    Spent(kInputWait, waited);
    Spent(kPull, pulled);
    Spent(kCompute, computed);
    if (const Time own = waited + pulled + computed; took > own) Spent(kPush, took - own);
    step_seconds_.Observe(ToSeconds(took));
    ++steps_;
    examples_ += outcome.examples;
    overflows_ += outcome.overflows;
    loss_scale_ = outcome.loss_scale;
    batches_ready_ = outcome.batches_ready;
  }

  void Collect(MetricSamples* out) const;
  // For the log: how many steps, and the milliseconds of a step in all and by phase, with what lay
  // between the steps; empty where there was none.
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
