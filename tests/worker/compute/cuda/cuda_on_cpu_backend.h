#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/worker/compute/device/fake_device.h"
#include "worker/compute/cuda/cuda_backend.h"

namespace shoal {

// The cuda backend on a machine without CUDA. Its own kernels run as whole grids on the calling
// thread, behind the copies and streams of a FakeDevice. Matrix products are plain sums here.
class CudaOnCpuBackend : public cuda::CudaBackend {
 public:
  struct Parts {
    std::unique_ptr<cuda::Convolutions> convolutions = nullptr;  // null: ConvolutionsOnCpu
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit CudaOnCpuBackend(std::unique_ptr<FakeDevice> device)
      : CudaOnCpuBackend(std::move(device), Parts()) {}
  CudaOnCpuBackend(std::unique_ptr<FakeDevice> device, Parts parts);
  std::string name() const override { return "cuda_on_cpu"; }
};

}  // namespace shoal
