#include "worker/compute/cuda/cuda_backend.h"

#include <map>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/moves.h"

namespace shoal::cuda {
namespace {

// By Op::type().
const std::map<std::string, StepFactory>& Factories() {
  static const auto& factories = *new std::map<std::string, StepFactory>{
#define KERNEL(TYPE) {#TYPE, TYPE},
#include "worker/compute/cuda/kernel_list.inc"
#undef KERNEL
  };
  return factories;
}

// Copies that are worth their start: at some 25 GB/s each takes 80 us.
constexpr int64_t kLeastCopiedBytes = 2 << 20;

}  // namespace

CudaBackend::CudaBackend(std::unique_ptr<Device> device, const ComputeTarget& target,
                         std::unique_ptr<MatrixProducts> products,
                         std::unique_ptr<Convolutions> convolutions)
    : DeviceBackend(std::move(device), kLeastCopiedBytes),
      products_(std::move(products)),
      convolutions_(std::move(convolutions)),
      target_({.stream = target.stream,
               .blocks = target.blocks,
               .products = products_.get(),
               .convolutions = convolutions_.get()}),
      moves_(CreateMoves(target.stream)) {}

std::set<std::string> CudaBackend::op_types() const {
  std::set<std::string> types;
  for (const auto& [type, kernel] : Factories()) types.insert(type);
  return types;
}

absl::Status CudaBackend::AddSteps(ProgramBuilder& builder) const {
  const std::vector<int> relus = FindConvolutionRelus(builder.plan());
  const std::set<int> absorbed(relus.begin(), relus.end());
  CudaProgram program(&builder, target_, relus);
  for (const int index : builder.plan().nodes()) {
    if (absorbed.contains(index)) continue;
    const Node& node = builder.graph().nodes()[index];
    builder.BeginWork(node.op->type());
    SHOAL_RETURN_IF_ERROR(Factories().at(node.op->type())(index, program));
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
