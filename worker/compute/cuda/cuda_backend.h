#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "worker/compute/cuda/cuda_program.h"
#include "worker/compute/cuda/plan_tuner.h"
#include "worker/compute/device/device_backend.h"

namespace shoal::cuda {

// Kernels of our own and NVIDIA's libraries, in float32, and in bfloat16 or float16 what layers
// under mixed_bfloat16 and mixed_float16 compute most of: convolutions, products, normalizations,
// activations, pooling, sums. The rest of such a layer is computed in float32. What it has kernels
// for: kernel_list.inc. Gradients of a training graph with a loss scale are divided by it when all
// are there, and checked.
class CudaBackend : public DeviceBackend {
 public:
  struct Options {
    std::unique_ptr<Device> device;
    const Stream* stream = nullptr;    // of the device; as ComputeTarget's
    int64_t blocks = 1;                // likewise
    std::unique_ptr<PlanTuner> tuner;  // of the two below; null where they have none
    std::unique_ptr<MatrixProducts> products;
    std::unique_ptr<Convolutions> convolutions;
    // For people: once of each layer whose convolutions are computed by plain sums, with why.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit CudaBackend(Options options);
  // On any thread: what libraries hold is the device's.
  ~CudaBackend() override { UseThreads(1); }

  std::string name() const override { return "cuda"; }
  std::set<std::string> op_types() const override;
  std::set<ComputeDtype> compute_dtypes() const override {
    return {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16};
  }
  absl::StatusOr<Graph> Rewrite(const Graph& model) const override;

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override;
  const DeviceMoveKernels& moves() const override { return *moves_; }

 private:
  void WarnOfPlainSums(const NodeName& node, const absl::Status& why);

  const std::unique_ptr<PlanTuner> tuner_;
  const std::unique_ptr<MatrixProducts> products_;
  const std::unique_ptr<Convolutions> convolutions_;
  const std::function<void(const std::string& warning)> on_warning_;
  const ComputeTarget target_;
  const std::unique_ptr<const DeviceMoveKernels> moves_;
  std::set<std::string> warned_of_;
};

}  // namespace shoal::cuda
