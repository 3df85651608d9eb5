#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"

#include <random>
#include <utility>

#include "tests/worker/compute/cuda/convolutions_on_cpu.h"
#include "worker/compute/cuda/cuda_program.h"
#include "worker/compute/cuda/kernels/matrix_product.h"
#include "worker/compute/cuda/kernels/run_on_cpu.h"

namespace shoal {
namespace {

// (a, b, c, workspace) or (a, b, bias, c, workspace)
class PlainProduct : public Kernel {
 public:
  explicit PlainProduct(const cuda::MatrixProduct& product) : product_(product) {}

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    cuda::WithElement(product_.operands, [&]<typename Operand>(Operand) {
      cuda::WithElement(product_.result,
                        [&]<typename Result>(Result) { Multiply<Operand, Result>(tensors); });
    });
    return absl::OkStatus();
  }

 private:
  template <typename Operand, typename Result>
  void Multiply(std::span<void* const> tensors) const {
    std::minstd_rand random;
    RunOnCpu(
        cuda::MatrixProductKernel<Operand, Result>{
            product_, static_cast<Operand*>(tensors[0]), static_cast<Operand*>(tensors[1]),
            product_.bias ? static_cast<Result*>(tensors[2]) : nullptr,
            static_cast<Result*>(tensors[2 + product_.bias])},
        random);
  }

  const cuda::MatrixProduct product_;
};

class PlainProducts : public cuda::MatrixProducts {
 public:
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const cuda::MatrixProduct& product,
                                               const cuda::NodeName&) override {
    return std::make_unique<PlainProduct>(product);
  }
  int64_t workspace_bytes() const override { return 16; }
};

}  // namespace

// A few blocks for each sum that is cut into slices.
CudaOnCpuBackend::CudaOnCpuBackend(std::unique_ptr<FakeDevice> device, Parts parts)
    : CudaBackend({.device = std::move(device),
                   .blocks = 5,
                   .products = std::make_unique<PlainProducts>(),
                   .convolutions = parts.convolutions != nullptr
                                       ? std::move(parts.convolutions)
                                       : std::make_unique<cuda::ConvolutionsOnCpu>(),
                   .on_warning = std::move(parts.on_warning)}) {}

}  // namespace shoal
