#include "common/model/ops/dropout.h"

#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/dropout_mask.h"

namespace shoal::cpu {
namespace {

// `first` is the number of the step's elements before x.
template <typename Element>
SHOAL_INLINE void DropoutOf(DropoutMask mask, int64_t first, const Element* x, int64_t begin,
                            int64_t end, Element* y) {
  for (int64_t i = begin; i < end; ++i) {
    y[i] = FromFloat<Element>(ToFloat(x[i]) * mask.Factor<float>(first + i));
  }
}
SHOAL_VECTORIZED void DropoutLoop(DropoutMask mask, int64_t first, const float* x, int64_t begin,
                                  int64_t end, float* y) {
  DropoutOf(mask, first, x, begin, end, y);
}
SHOAL_VECTORIZED void DropoutLoop(DropoutMask mask, int64_t first, const BFloat16* x, int64_t begin,
                                  int64_t end, BFloat16* y) {
  DropoutOf(mask, first, x, begin, end, y);
}

template <typename Element>
void GroupedDropoutLoop(DropoutMask mask, DropoutGroups groups, int64_t first, const Element* x,
                        int64_t begin, int64_t end, Element* y) {
  for (int64_t i = begin; i < end; ++i) {
    y[i] = FromFloat<Element>(ToFloat(x[i]) * mask.Factor<float>(groups.Of(first + i)));
  }
}

// The mask depends on the position in the row-major tensor of the whole batch. Backward computes
// the same product.
template <typename DropoutOpType>
absl::Status AddDropoutStep(const Node& node, CpuProgramBuilder& program) {
  const auto& op = static_cast<const DropoutOpType&>(*node.op);
  ProgramBuilder& builder = program.builder();
  const ValueId input = node.inputs[0], output = node.outputs[0];
  if (!builder.in_training_mode()) {
    builder.Bind(output, program.RowMajor(input, program.shared_dtype(input, output)));
    return absl::OkStatus();
  }
  const ComputeDtype type = program.stored_dtype(node);
  const TensorId x = program.RowMajor(input, type);
  const TensorId y = builder.Output(output, type);
  const Shape shape = builder.shape(output);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        ElementCount(shape), kElementGrain, {x, y},
        [rate = op.rate, seed = op.layer_seed, groups = op.groups,
         elements = ElementCount(shape) / shape[0]](
            const RunContext& context, const LoopTensors& data, int64_t begin, int64_t end) {
          const DropoutMask mask(context, seed, rate);
          const int64_t first = context.first_example * elements;
          const Element* from = data.At<Element>(0);
          if (groups.block == 1) {
            DropoutLoop(mask, first, from, begin, end, data.At<Element>(1));
          } else {
            GroupedDropoutLoop(mask, groups, first, from, begin, end, data.At<Element>(1));
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status Dropout(const Node& node, CpuProgramBuilder& program) {
  return AddDropoutStep<DropoutOp>(node, program);
}

absl::Status DropoutBackward(const Node& node, CpuProgramBuilder& program) {
  return AddDropoutStep<DropoutBackwardOp>(node, program);
}

}  // namespace shoal::cpu
