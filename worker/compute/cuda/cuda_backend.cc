#include "worker/compute/cuda/cuda_backend.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/gradient_check.h"
#include "worker/compute/cuda/ops/moves.h"
#include "worker/compute/cuda/ops/sums.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal::cuda {

// The factories of the listed ops, which ops/ defines.
#define KERNEL(TYPE) absl::Status TYPE(const Node& node, CudaProgramBuilder& program);
#define TYPED(TYPE) KERNEL(TYPE)
#define FUSED(TYPE, FACTORY)
#include "worker/compute/cuda/kernel_list.inc"
#undef FUSED
#undef TYPED
#undef KERNEL

namespace {

// Adds the steps of a node.
using StepFactory = absl::Status (*)(const Node& node, CudaProgramBuilder& program);

struct ListedFactory {
  StepFactory add_steps;
  bool typed;
};
// By Op::type().
const std::map<std::string, ListedFactory>& Factories() {
  static const auto& factories = *new std::map<std::string, ListedFactory>{
#define KERNEL(TYPE) {#TYPE, {TYPE, false}},
#define TYPED(TYPE) {#TYPE, {TYPE, true}},
#define FUSED(TYPE, FACTORY) {#TYPE, {FACTORY, true}},
#include "worker/compute/cuda/kernel_list.inc"
#undef FUSED
#undef TYPED
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

bool CudaBackend::Supports(const Node& node) const {
  // cuDNN has fast engines for a bias followed by a ReLU without a maximum. (cuBLASLt has such an
  // epilogue, too, but does not document its result for not-a-number.)
  if (const auto* fused = dynamic_cast<const Conv2DReluOp*>(node.op.get());
      fused != nullptr && (node.inputs.size() != 3 || fused->relu.max_value >= 0)) {
    return false;
  }
  const auto found = Factories().find(node.op->type());
  if (found == Factories().end()) return false;
  return node.compute_dtype == ComputeDtype::kFloat32 || found->second.typed;
}

absl::Status CudaBackend::AddSteps(ProgramBuilder& builder) const {
  CudaProgramBuilder program(&builder, target_);
  for (const Node& node : builder.plan().nodes()) {
    builder.BeginWork(ModelTypeOf(*node.op));
    program.BeginNode(node);
    SHOAL_RETURN_IF_ERROR(Factories().at(node.op->type()).add_steps(node, program));
  }
  AddSums(program);
  if (builder.plan().computes_gradients() &&
      builder.plan().training_graph().loss_scale != kNoValue) {
    builder.BeginWork("GradientCheck");
    AddGradientCheck(program);
  }
  return absl::OkStatus();
}

}  // namespace shoal::cuda
