// The conversions between element types.

#include "worker/compute/cuda/program/cuda_program_builder.h"

#include <type_traits>

#include "worker/compute/cuda/kernels/cast.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
TensorId CudaProgramBuilder::tensor(ValueId value, ComputeDtype type) {
  const TensorId kept = builder_.tensor(value);
  const ComputeDtype kept_type = builder_.tensor_info(kept).type;
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

void CudaProgramBuilder::Bind(ValueId value, ValueId other) {
  builder_.Bind(value,
                builder_.plan().wanted_outside(value) ? tensor(other) : builder_.tensor(other));
}

}  // namespace shoal::cuda
