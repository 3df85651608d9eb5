#include "worker/compute/cuda/cuda_backend.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/gradient_check.h"
#include "worker/compute/cuda/ops/moves.h"
#include "worker/compute/cuda/ops/sums.h"
#include "worker/compute/plan/folded_padding.h"
#include "worker/compute/plan/unused_borders.h"

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

// Large enough to outweigh the start of a copy: at some 25 GB/s each takes 80 us.
constexpr int64_t kMinCopiedBytes = 2 << 20;

}  // namespace

CudaBackend::CudaBackend(Options options)
    : DeviceBackend(std::move(options.device), kMinCopiedBytes, options.on_warning),
      tuner_(std::move(options.tuner)),
      products_(std::move(options.products)),
      convolutions_(std::move(options.convolutions)),
      on_warning_(std::move(options.on_warning)),
      target_({.stream = options.stream,
               .blocks = options.blocks,
               .products = products_.get(),
               .convolutions = convolutions_.get(),
               .on_plain_sums = [this](const NodeName& node,
                                       const absl::Status& why) { WarnOfPlainSums(node, why); }}),
      moves_(CreateMoves(options.stream)) {}

void CudaBackend::WarnOfPlainSums(const NodeName& node, const absl::Status& why) {
  const std::string name = CallText(node.op, {.layer = node.layer});
  // A layer is compiled once for each batch size, and the text of `why` differs each time.
  if (!warned_of_.insert(name).second) return;
  on_warning_(absl::StrCat(name, " is computed by plain sums, many times slower than by cuDNN: ",
                           std::string(why.message())));
}

std::set<std::string> CudaBackend::op_types() const {
  std::set<std::string> types;
  for (const auto& [type, kernel] : Factories()) types.insert(type);
  return types;
}

absl::StatusOr<Graph> CudaBackend::Rewrite(const Graph& model) const {
  SHOAL_ASSIGN_OR_RETURN(const Graph cropped, CropUnusedBorders(model));
  return FoldPadding(cropped);
}

absl::Status CudaBackend::AddSteps(ProgramBuilder& builder) const {
  CudaProgram program(&builder, target_, FindCudaFusions(builder.plan()));
  for (const int index : builder.plan().nodes()) {
    if (program.fusions().absorbed[index]) continue;
    const Node& node = builder.graph().nodes()[index];
    builder.BeginWork(node.op->type());
    program.BeginNode(index);
    SHOAL_RETURN_IF_ERROR(Factories().at(node.op->type())(index, program));
  }
  AddSums(program);
  if (builder.plan().trains() && builder.plan().training_graph().loss_scale != kNoValue) {
    builder.BeginWork("GradientCheck");
    AddGradientCheck(program);
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
