#pragma once

#include <cstdint>
#include <memory>

#include "worker/compute/program_builder.h"

namespace shoal {

// What a device has kernels for beside those of programs.
class DeviceMoveKernels : public MoveKernels {
 public:
  // (gradient of a part of a batch, sum): sum += RunContext::share * gradient, or where
  // RunContext::begins_sums says so, that alone.
  virtual std::unique_ptr<Kernel> AddPart(int64_t size_bytes) const = 0;
  // (from, to): `count` bytes as as many floats.
  virtual std::unique_ptr<Kernel> FloatsOfBytes(int64_t count) const = 0;
};

}  // namespace shoal
