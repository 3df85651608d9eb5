#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/device/device.h"
#include "worker/compute/device/growing_device_memory.h"
#include "worker/compute/program/gradient_check.h"
#include "worker/compute/program/program.h"

namespace shoal {

// The results of a program (Program::Results) on the host, in pinned memory that a device copies
// into. Not thread-safe.
class ResultBuffer {
 public:
  // All must outlive this. Several buffers may share `memory` and use it in turn.
  ResultBuffer(const Program* program, Device* device, GrowingDeviceMemory* memory);

  // Takes the memory.
  absl::Status Reserve() { return memory_.Reserve(device_, size_bytes_); }
  // Submits the copy of one of the program's results, on kOut. `addresses` are the device's, by
  // tensor.
  absl::Status StartCopying(TensorId result, const std::vector<void*>& addresses);

  // The results of the last copy, valid after the device has finished it. Requires that the program
  // has the result.
  std::span<const float> prediction() const { return Values<float>(results().prediction); }
  std::span<const float> losses() const { return Values<float>(results().losses); }
  std::span<const double> sums() const { return Values<double>(results().sums); }
  const GradientCheck& check() const { return Values<GradientCheck>(results().check)[0]; }

 private:
  const Program::Results& results() const { return program_.results(); }
  // The place of a result in the memory.
  int64_t OffsetOf(TensorId result) const;
  template <typename Value>
  std::span<const Value> Values(TensorId result) const {
    return {reinterpret_cast<const Value*>(memory_.data() + OffsetOf(result)),
            program_.tensors()[result].size_bytes / sizeof(Value)};
  }

  const Program& program_;
  Device& device_;
  GrowingDeviceMemory& memory_;
  int64_t size_bytes_ = 0;
};

}  // namespace shoal
