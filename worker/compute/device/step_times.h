#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/device/device.h"
#include "worker/compute/program/executable.h"

namespace shoal {

// Measures how long the device computes each step of a run, by an event before and after it. Not
// thread-safe.
class StepTimes {
 public:
  // The device must outlive this.
  explicit StepTimes(Device* device) : device_(*device) {}

  // Begins with another run. The times of the run before are lost.
  void Begin() { steps_ = 0; }
  // Launches a kernel between two events.
  absl::Status Launch(Kernel& kernel, const RunContext* context, std::span<void* const> tensors,
                      const std::string& work);
  // Reports the times of a run that has ended.
  absl::Status Report(const OnStepTimed& on_step_timed) const;

 private:
  struct Timing {
    std::string work;
    std::unique_ptr<Device::Event> begin, end;
  };

  Device& device_;
  std::vector<Timing> timings_;  // the run uses the first steps_ entries
  size_t steps_ = 0;
};

}  // namespace shoal
