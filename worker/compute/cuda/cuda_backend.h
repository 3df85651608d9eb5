#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "worker/compute/cuda/cuda_program.h"
#include "worker/compute/device/device_backend.h"

namespace shoal::cuda {

// Kernels of our own and NVIDIA's libraries, all in float32 so far. What it has kernels for:
// kernel_list.inc.
class CudaBackend : public DeviceBackend {
 public:
  // What computes on `device`, which owns or outlives what `target` points to, but the products
  // and convolutions: those are given here.
  CudaBackend(std::unique_ptr<Device> device, const ComputeTarget& target,
              std::unique_ptr<MatrixProducts> products, std::unique_ptr<Convolutions> convolutions);

  std::string name() const override { return "cuda"; }
  std::set<std::string> op_types() const override;

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override;
  const MoveKernels& moves() const override { return *moves_; }

 private:
  const std::unique_ptr<MatrixProducts> products_;
  const std::unique_ptr<Convolutions> convolutions_;
  const ComputeTarget target_;
  const std::unique_ptr<const MoveKernels> moves_;
};

}  // namespace shoal::cuda
