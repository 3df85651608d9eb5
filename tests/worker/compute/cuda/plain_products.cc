#include "tests/worker/compute/cuda/plain_products.h"

#include <random>
#include <span>

#include "worker/compute/cuda/kernels/matrix_product.h"
#include "worker/compute/cuda/kernels/run_on_cpu.h"
#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {
namespace {

// (a, b, c, workspace) or (a, b, bias, c, workspace)
class PlainProduct : public Kernel {
 public:
  explicit PlainProduct(const MatrixProduct& product) : product_(product) {}

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    WithElement(product_.operands, [&]<typename Operand>(Operand) {
      WithElement(product_.result,
                  [&]<typename Result>(Result) { Multiply<Operand, Result>(tensors); });
    });
    return absl::OkStatus();
  }

 private:
  template <typename Operand, typename Result>
  void Multiply(std::span<void* const> tensors) const {
    std::minstd_rand random;
    RunOnCpu(
        MatrixProductKernel<Operand, Result>{
            product_, static_cast<Operand*>(tensors[0]), static_cast<Operand*>(tensors[1]),
            product_.bias ? static_cast<Result*>(tensors[2]) : nullptr,
            static_cast<Result*>(tensors[2 + product_.bias])},
        random);
  }

  const MatrixProduct product_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> PlainProducts::Make(const MatrixProduct& product, bool,
                                                            const NodeName&) {
  return std::make_unique<PlainProduct>(product);
}

}  // namespace shoal::cuda
