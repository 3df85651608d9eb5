#pragma once

#include <type_traits>
#include <utility>

#include "worker/compute/cuda/kernels/binary.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {

// y = a `kind` b, all of the same shape and of type Element.
template <BinaryOp::Kind kind, typename Element>
void AddBinary(const Node& node, TensorId a, TensorId b, TensorId y, int64_t count,
               CudaProgramBuilder& program) {
  WithWidth<Element>(count, [&]<int width>(std::integral_constant<int, width>) {
    TensorList tensors;
    const auto of_a = tensors.Add<Element>(a), of_b = tensors.Add<Element>(b);
    const auto out = tensors.Add<Element>(y);
    AddKernel(
        node, std::move(tensors).Take(),
        [=](const StepTensors& at) {
          return BinaryKernel<kind, Element, width>{at[of_a], at[of_b], count, at[out]};
        },
        program);
  });
}

}  // namespace shoal::cuda
