#include "worker/compute/device/step_times.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace shoal {

absl::Status StepTimes::Launch(Kernel& kernel, const RunContext* context,
                               std::span<void* const> tensors, const std::string& work) {
  if (steps_ == timings_.size()) {
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Device::Event> begin, device_.NewTimedEvent());
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Device::Event> end, device_.NewTimedEvent());
    timings_.push_back({.begin = std::move(begin), .end = std::move(end)});
  }
  Timing& timing = timings_[steps_++];
  timing.work = work;
  SHOAL_RETURN_IF_ERROR(device_.Record(Device::Stream::kCompute, *timing.begin));
  SHOAL_RETURN_IF_ERROR(device_.Launch(kernel, context, tensors));
  return device_.Record(Device::Stream::kCompute, *timing.end);
}

absl::Status StepTimes::Report(const OnStepTimed& on_step_timed) const {
  for (size_t i = 0; i < steps_; ++i) {
    SHOAL_ASSIGN_OR_RETURN(const double seconds,
                           device_.SecondsBetween(*timings_[i].begin, *timings_[i].end));
    on_step_timed(timings_[i].work, std::chrono::nanoseconds(std::llround(1e9 * seconds)));
  }
  return absl::OkStatus();
}

}  // namespace shoal
