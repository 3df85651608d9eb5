#include "worker/compute/reference/reference_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/compute/reference/kernels.h"

namespace shoal {
namespace reference {

template <typename Scalar>
KernelTable<Scalar> AllKernels() {
  KernelTable<Scalar> table;
  AddDenseKernels(table);
  AddConv2DKernels(table);
  AddPool2DKernels(table);
  AddElementwiseKernels(table);
  AddLossKernels(table);
  return table;
}
template KernelTable<float> AllKernels();
template KernelTable<double> AllKernels();

namespace {

// A node as a step of a program: (inputs..., output).
class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(KernelFunction<float> function, const Node& node, const ProgramBuilder& builder)
      : op_(node.op), function_(function), dropout_(builder.dropout()) {
    for (const ValueId input : node.inputs) input_shapes_.push_back(builder.shape(input));
    output_shape_ = builder.shape(node.outputs[0]);
  }

  absl::Status Run(const RunContext& context, std::span<void* const> tensors) override {
    Arguments<float> arguments = {.op = *op_,
                                  .output = {static_cast<float*>(tensors.back()), output_shape_},
                                  .dropout = dropout_,
                                  .job_seed = context.job_seed,
                                  .step = context.step};
    for (size_t i = 0; i < input_shapes_.size(); ++i) {
      arguments.inputs.push_back({static_cast<const float*>(tensors[i]), input_shapes_[i]});
    }
    function_(arguments);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Op> op_;
  const KernelFunction<float> function_;
  const bool dropout_;
  std::vector<Shape> input_shapes_;
  Shape output_shape_;
};

class ReferenceBackend : public Backend {
 public:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    for (const int index : builder.nodes()) {
      const Node& node = builder.graph().nodes()[index];
      const auto function = kernels_.find(node.op->type());
      if (function == kernels_.end()) {
        return absl::UnimplementedError(
            absl::StrCat("the reference backend has no kernel for ", node.op->type()));
      }
      auto kernel = std::make_unique<ReferenceKernel>(function->second, node, builder);
      std::vector<TensorId> tensors;
      for (const ValueId input : node.inputs) tensors.push_back(builder.tensor(input));
      tensors.push_back(builder.Output(node.outputs[0]));
      builder.AddStep(std::move(kernel), std::move(tensors));
    }
    return absl::OkStatus();
  }

  void UseThreads(int) const override {}

 private:
  const KernelTable<float> kernels_ = AllKernels<float>();
};

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> CreateReferenceBackend() {
  return std::make_unique<reference::ReferenceBackend>();
}

}  // namespace shoal
