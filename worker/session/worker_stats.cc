#include "worker/session/worker_stats.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shoal {
namespace {

constexpr std::array<const char*, WorkerStats::kPhases> kNames = {
    "input_wait", "pull", "compute", "push", "evaluate", "idle"};

}  // namespace

void WorkerStats::Collect(MetricSamples* out) const {
  for (int phase = 0; phase < kPhases; ++phase)
    out->Add("shoal_worker_phase_seconds_total", phase_seconds_[phase], {kNames[phase]});
  out->Add("shoal_worker_steps_total", static_cast<double>(steps_));
  out->Add("shoal_worker_examples_total", static_cast<double>(examples_));
  out->Add("shoal_worker_overflows_total", static_cast<double>(overflows_));
  out->Add("shoal_worker_loss_scale", loss_scale_);
  out->Add(step_seconds_);
  out->Add("shoal_worker_batches_ready", static_cast<double>(batches_ready_));
}

LogFields WorkerStats::PerStep() const {
  if (steps_ == 0) return {};
  const auto per_step_ms = [this](double seconds) {
    return absl::StrFormat("%.2f", 1000 * seconds / static_cast<double>(steps_));
  };
  LogFields fields = {{"steps", absl::StrCat(steps_)},
                      {"step_ms", per_step_ms(step_seconds_.sum())}};
  for (int phase = 0; phase < kPhases; ++phase)
    fields.emplace_back(absl::StrCat(kNames[phase], "_ms"), per_step_ms(phase_seconds_[phase]));
  return fields;
}

}  // namespace shoal
