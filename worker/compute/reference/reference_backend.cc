#include "worker/compute/reference/reference_backend.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "worker/compute/backend/host_backend.h"
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

// A node as a step of a program, with the tensors (inputs that it reads..., outputs...).
class ReferenceKernel : public Kernel {
 public:
  ReferenceKernel(KernelFunction function, const Node& node, const ProgramBuilder& builder)
      : op_(node.op), function_(function), training_(builder.in_training_mode()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      input_shapes_.push_back(builder.shape(node.inputs[i]));
      reads_.push_back(op_->Reads(static_cast<int>(i), training_));
    }
    for (const ValueId output : node.outputs) output_shapes_.push_back(builder.shape(output));
  }

  absl::Status Run(const RunContext* context, std::span<void* const> tensors) override {
    Arguments arguments = {.op = *op_, .training = training_, .context = *context};
    std::vector<std::vector<double>> inputs, outputs;
    for (size_t i = 0; i < input_shapes_.size(); ++i) {
      arguments.inputs.push_back({nullptr, input_shapes_[i]});
      if (!reads_[i]) continue;
      inputs.push_back(ToDouble(tensors[inputs.size()], input_shapes_[i]));
      arguments.inputs.back().data = inputs.back().data();
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
  std::vector<bool> reads_;  // by input
  std::vector<Shape> output_shapes_;
};

class ReferenceBackend : public HostBackend {
 public:
  std::string name() const override { return "reference"; }

  bool Supports(const Node& node) const override { return ReferenceSupports(node); }
  bool rewrites_models() const override { return false; }
  void UseThreads(int) const override {}

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override {
    AddReferenceSteps(builder);
    return absl::OkStatus();
  }
};

}  // namespace
}  // namespace reference

bool ReferenceSupports(const Node& node) {
  return node.compute_dtype == ComputeDtype::kFloat32 &&
         reference::Kernels().contains(node.op->type());
}

void AddReferenceSteps(ProgramBuilder& builder) {
  for (const Node& node : builder.plan().nodes()) {
    builder.BeginWork(node.op->type());
    auto kernel = std::make_unique<reference::ReferenceKernel>(
        reference::Kernels().at(node.op->type()), node, builder);
    std::vector<TensorId> tensors;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.op->Reads(static_cast<int>(i), builder.in_training_mode())) continue;
      tensors.push_back(builder.tensor(node.inputs[i]));
    }
    for (const ValueId output : node.outputs) tensors.push_back(builder.Output(output));
    builder.AddStep(std::move(kernel), std::move(tensors));
  }
}

std::unique_ptr<Backend> CreateReferenceBackend() {
  return std::make_unique<reference::ReferenceBackend>();
}

}  // namespace shoal
