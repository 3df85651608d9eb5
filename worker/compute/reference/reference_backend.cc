#include "worker/compute/reference/reference_backend.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "worker/compute/reference/kernels.h"

namespace shoal {
namespace reference {

const std::map<std::string, KernelFunction>& Kernels() {
  static const auto& kernels = *new std::map<std::string, KernelFunction>{
#define KERNEL(TYPE) {#TYPE, TYPE},
#include "worker/compute/reference/kernel_list.inc"
#undef KERNEL
  };
  return kernels;
}

namespace {

std::vector<double> ToDouble(const void* tensor, const Shape& shape) {
  const auto* values = static_cast<const float*>(tensor);
  return {values, values + ElementCount(shape)};
}

// A node as a step of a program: (inputs..., outputs...).
class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(KernelFunction function, const Node& node, const ProgramBuilder& builder)
      : op_(node.op), function_(function), training_(builder.training()) {
    for (const ValueId input : node.inputs) input_shapes_.push_back(builder.shape(input));
    for (const ValueId output : node.outputs) output_shapes_.push_back(builder.shape(output));
  }

  absl::Status Run(const RunContext& context, std::span<void* const> tensors) override {
    Arguments arguments = {
        .op = *op_, .training = training_, .job_seed = context.job_seed, .step = context.step};
    std::vector<std::vector<double>> inputs, outputs;
    for (size_t i = 0; i < input_shapes_.size(); ++i) {
      inputs.push_back(ToDouble(tensors[i], input_shapes_[i]));
      arguments.inputs.push_back({inputs.back().data(), input_shapes_[i]});
    }
    for (const Shape& shape : output_shapes_) {
      outputs.emplace_back(ElementCount(shape));
      arguments.outputs.push_back({outputs.back().data(), shape});
    }
    function_(arguments);
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::transform(outputs[i].begin(), outputs[i].end(),
                     static_cast<float*>(tensors[inputs.size() + i]),
                     [](double value) { return static_cast<float>(value); });
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Op> op_;
  const KernelFunction function_;
  const bool training_;
  std::vector<Shape> input_shapes_;
  std::vector<Shape> output_shapes_;
};

class ReferenceBackend : public Backend {
 public:
  std::string name() const override { return "reference"; }

  std::set<std::string> op_types() const override {
    std::set<std::string> types;
    for (const auto& [type, kernel] : Kernels()) types.insert(type);
    return types;
  }

  absl::Status AddSteps(ProgramBuilder& builder) const override {
    for (const int index : builder.nodes()) {
      const Node& node = builder.graph().nodes()[index];
      auto kernel = std::make_unique<ReferenceKernel>(Kernels().at(node.op->type()), node, builder);
      std::vector<TensorId> tensors;
      for (const ValueId input : node.inputs) tensors.push_back(builder.tensor(input));
      for (const ValueId output : node.outputs) tensors.push_back(builder.Output(output));
      builder.AddStep(std::move(kernel), std::move(tensors));
    }
    return absl::OkStatus();
  }

  void UseThreads(int) const override {}
};

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> CreateReferenceBackend() {
  return std::make_unique<reference::ReferenceBackend>();
}

}  // namespace shoal
