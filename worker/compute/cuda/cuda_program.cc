// The element types of values, and the conversions between them.

#include "worker/compute/cuda/cuda_program.h"

#include <algorithm>
#include <type_traits>

#include "common/base/check.h"
#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/cast.h"

namespace shoal::cuda {
namespace {

constexpr ComputeDtype kFloat32 = ComputeDtype::kFloat32;

}  // namespace

bool CudaProgram::leaves(ValueId value) const {
  const TrainingGraph& training = builder_.plan().training_graph();
  const std::vector<ValueId>& pushed = training.pushed_values;
  return value == training.prediction || value == training.loss_per_example ||
         std::find(pushed.begin(), pushed.end(), value) != pushed.end();
}

ComputeDtype CudaProgram::type_of(TensorId tensor) const {
  const auto found = types_.find(tensor);
  return found == types_.end() ? kFloat32 : found->second;
}

ComputeDtype CudaProgram::read_dtype(const Node& node) const {
  // Whole numbers such as ids stay exact under every policy: they need more than 8 bits.
  if (builder_.graph().value(node.outputs[0]).whole_numbers.has_value()) return kFloat32;
  return node.compute_dtype;
}

ComputeDtype CudaProgram::stored_dtype(const Node& node) const {
  return leaves(node.outputs[0]) ? kFloat32 : read_dtype(node);
}

TensorId CudaProgram::ScratchOf(ComputeDtype type, int64_t count) {
  if (type == kFloat32) return Scratch(count);
  static_assert(sizeof(BFloat16) == sizeof(Float16));
  const TensorId tensor = Scratch<Float16>(count);
  types_[tensor] = type;
  return tensor;
}

TensorId CudaProgram::tensor(ValueId value, ComputeDtype type) {
  const TensorId kept = builder_.tensor(value);
  const ComputeDtype kept_type = type_of(kept);
  if (kept_type == type) return kept;
  const auto [found, is_new] = copies_.try_emplace({kept, type}, -1);
  if (!is_new) return found->second;
  const int64_t size = count(value);
  const TensorId copy = found->second = ScratchOf(type, size);
  WithWidth<Float16>(size, [&]<int width>(std::integral_constant<int, width>) {
    WithElement(kept_type, [&]<typename From>(From) {
      WithElement(type, [&]<typename To>(To) {
        AddKernel(
            *current_, {kept, copy},
            [=](const StepTensors& at) {
              return CastKernel<From, To, width>{at.At<From>(0), at.At<To>(1), size};
            },
            *this);
      });
    });
  });
  return copy;
}

TensorId CudaProgram::Output(ValueId value, ComputeDtype type) {
  if (type == kFloat32) return builder_.Output(value);
  SHOAL_CHECK(!leaves(value), "value ", value);
  const TensorId tensor = ScratchOf(type, count(value));
  builder_.Bind(value, tensor);
  return tensor;
}

void CudaProgram::Bind(ValueId value, ValueId other) {
  builder_.Bind(value, leaves(value) ? tensor(other) : builder_.tensor(other));
}

}  // namespace shoal::cuda
