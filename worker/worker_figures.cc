#include "worker/worker_figures.h"

namespace shoal {

void WorkerFigures::Collect(MetricSamples* out) const {
  constexpr std::array<const char*, kPhases> kNames = {"input_wait", "pull",     "compute",
                                                       "push",       "evaluate", "idle"};
  for (int phase = 0; phase < kPhases; ++phase)
    out->Add("shoal_worker_phase_seconds_total", phase_seconds_[phase], {kNames[phase]});
  out->Add("shoal_worker_steps_total", static_cast<double>(steps_));
  out->Add("shoal_worker_examples_total", static_cast<double>(examples_));
  out->Add("shoal_worker_overflows_total", static_cast<double>(overflows_));
  out->Add("shoal_worker_loss_scale", loss_scale_);
  out->Add(step_seconds_);
  out->Add("shoal_worker_batches_ready", static_cast<double>(batches_ready_));
}

}  // namespace shoal
