#pragma once

#include <memory>

#include "tests/worker/compute/device/fake_device.h"
#include "worker/compute/cuda/cuda_backend.h"

namespace shoal {

// The cuda backend on a machine without CUDA: its own kernels, whole grids of them run on the
// calling thread, behind the copies and the streams of a FakeDevice. Products of matrices are plain
// sums here.
class CudaOnCpuBackend : public cuda::CudaBackend {
 public:
  explicit CudaOnCpuBackend(std::unique_ptr<FakeDevice> device);
  std::string name() const override { return "cuda_on_cpu"; }
};

}  // namespace shoal
