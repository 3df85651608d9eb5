#pragma once

#include <cstdint>
#include <memory>

#include "worker/compute/program/program_builder.h"

namespace shoal {

// The device's kernels besides those of programs.
class DeviceMoveKernels : public MoveKernels {
 public:
  // (gradient of a part of a batch, sum): sum += RunContext::share * gradient. Overwrites the sum
  // if RunContext::begins_sums.
  virtual std::unique_ptr<Kernel> AddPart(int64_t size_bytes) const = 0;
  // (from, to): converts `count` bytes to floats.
  virtual std::unique_ptr<Kernel> FloatsOfBytes(int64_t count) const = 0;
};

}  // namespace shoal
