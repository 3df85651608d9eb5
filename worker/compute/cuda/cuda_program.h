#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/matrix_products.h"
#include "worker/compute/program_builder.h"

namespace shoal::cuda {

class Stream;

// Where the kernels of a backend go, and what else computes there.
struct ComputeTarget {
  // Null, for tests: the kernels run on the calling thread, in the memory of the host.
  const Stream* stream = nullptr;
  // Enough to keep the whole device busy: a few times its multiprocessors.
  int64_t blocks = 1;
  MatrixProducts* products = nullptr;
  Convolutions* convolutions = nullptr;
  // Told of each node that `convolutions` does not compute, with why; plain sums then do.
  std::function<void(const NodeName& node, const absl::Status& why)> on_plain_sums = nullptr;
};

// What the factories of the backend's kernels build with. Everything is row-major and float32.
// Lives while one program is built. Not thread-safe.
class CudaProgram {
 public:
  // `fused_relus`: by node, what fused_relu() says.
  CudaProgram(ProgramBuilder* builder, const ComputeTarget& target, std::vector<int> fused_relus)
      : builder_(*builder), target_(target), fused_relus_(std::move(fused_relus)) {}

  ProgramBuilder& builder() { return builder_; }
  const ComputeTarget& target() const { return target_; }
  const Node& node(int index) const { return builder_.graph().nodes()[index]; }
  NodeName name(int index) const {
    return {.op = node(index).op->type(), .layer = node(index).layer};
  }

  // The node of the ReLU that the convolution at `index` applies to its output; -1: none.
  int fused_relu(int index) const { return fused_relus_[index]; }

  Shape shape(ValueId value) const { return builder_.shape(value); }
  int64_t count(ValueId value) const { return ElementCount(shape(value)); }
  TensorId tensor(ValueId value) const { return builder_.tensor(value); }
  TensorId Output(ValueId value) { return builder_.Output(value); }
  // Memory for `count` numbers that live from the first to the last step that is given it.
  template <typename Element = float>
  TensorId Scratch(int64_t count) {
    return builder_.AddTensor(count * static_cast<int64_t>(sizeof(Element)));
  }

 private:
  ProgramBuilder& builder_;
  const ComputeTarget& target_;
  const std::vector<int> fused_relus_;
};

// Rows and columns of what is normalized, multiplied or summed along its last axis.
struct MatrixExtents {
  explicit MatrixExtents(const Shape& shape)
      : rows(ElementCount(Shape(shape.begin(), shape.end() - 1))), columns(shape.back()) {}
  int64_t rows, columns;
};

// By node, the ReLU that a convolution with a bias computes along: of those that the plan's fusions
// name, what is not cut off above (ConvolutionEnding).
std::vector<int> FindConvolutionRelus(const Plan& plan);

// Adds the steps of a node.
using StepFactory = absl::Status (*)(int node_index, CudaProgram& program);

#define KERNEL(TYPE) absl::Status TYPE(int node_index, CudaProgram& program);
#include "worker/compute/cuda/kernel_list.inc"
#undef KERNEL

}  // namespace shoal::cuda
