#pragma once

#include <type_traits>

#include "worker/compute/cuda/kernel_step.h"
#include "worker/compute/cuda/kernels/binary.h"

namespace shoal::cuda {

// y = a `kind` b, all of the same shape and of type Element.
template <BinaryOp::Kind kind, typename Element>
void AddBinary(const Node& node, TensorId a, TensorId b, TensorId y, int64_t count,
               CudaProgramBuilder& program) {
  WithWidth<Element>(count, [&]<int width>(std::integral_constant<int, width>) {
    AddKernel(
        node, {a, b, y},
        [=](const StepTensors& at) {
          return BinaryKernel<kind, Element, width>{at.At<Element>(0), at.At<Element>(1), count,
                                                    at.At<Element>(2)};
        },
        program);
  });
}

}  // namespace shoal::cuda
