#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "worker/compute/cuda/program/cuda_program_builder.h"
#include "worker/compute/cuda/tuning/algorithm_tuner.h"
#include "worker/compute/device/device_backend.h"

namespace shoal::cuda {

// Computes with kernels of our own and NVIDIA's libraries, in float32. For layers under
// mixed_bfloat16 and mixed_float16, the most costly ops use bfloat16 or float16: convolutions,
// products, normalizations, activations, pooling, sums. The rest of such a layer is computed in
// float32. kernel_list.inc lists the supported ops. For a training graph with a loss scale, it
// divides the gradients by the scale when all are complete, and checks them.
class CudaBackend : public DeviceBackend {
 public:
  struct Options {
    std::unique_ptr<Device> device;
    const Stream* stream = nullptr;         // the device's; as in ComputeTarget
    int64_t blocks = 1;                     // as in ComputeTarget
    std::unique_ptr<AlgorithmTuner> tuner;  // used by the two below; null if they have none
    std::unique_ptr<MatrixProducts> products;
    std::unique_ptr<Convolutions> convolutions;
    // Gets a message for people: once for each layer whose convolutions are computed by plain sums,
    // with the reason.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit CudaBackend(Options options);
  // May run on any thread: the libraries hold resources of the device.
  ~CudaBackend() override { UseThreads(1); }

  std::string name() const override { return "cuda"; }
  bool Supports(const Node& node) const override;

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override;
  const DeviceMoveKernels& moves() const override { return *moves_; }

 private:
  void WarnOfPlainSums(const NodeName& node, const absl::Status& why);

  const std::unique_ptr<AlgorithmTuner> tuner_;
  const std::unique_ptr<MatrixProducts> products_;
  const std::unique_ptr<Convolutions> convolutions_;
  const std::function<void(const std::string& warning)> on_warning_;
  const ComputeTarget target_;
  const std::unique_ptr<const DeviceMoveKernels> moves_;
  std::set<std::string> warned_of_;
};

}  // namespace shoal::cuda
