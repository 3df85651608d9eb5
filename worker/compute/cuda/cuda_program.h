#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/cuda/convolutions.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/matrix_products.h"
#include "worker/compute/cuda/with_element.h"
#include "worker/compute/plan/fusions.h"
#include "worker/compute/program_builder.h"

namespace shoal::cuda {

class Stream;

// Where the kernels of a backend go, and what else computes there.
struct ComputeTarget {
  // Null, for tests: the kernels run on the calling thread, in the memory of the host.
  const Stream* stream = nullptr;
  // Enough to keep the whole device busy: four times its multiprocessors.
  int64_t blocks = 1;
  // Of kernels whose threads have so much on their way that two of a multiprocessor keep it busy,
  // and so many registers that it runs no more at once.
  int64_t few_blocks() const { return std::max<int64_t>(1, blocks / 2); }
  MatrixProducts* products = nullptr;
  Convolutions* convolutions = nullptr;
  // Told of each node that `convolutions` does not compute, with why; plain sums then do.
  std::function<void(const NodeName& node, const absl::Status& why)> on_plain_sums = nullptr;
};

// What the factories of the backend's kernels build with. Everything is row-major, and float32,
// bfloat16 or float16: what the caller reads and what is the caller's is float32. A factory asks
// for its tensors as what its kernels take. Lives while one program is built. Not thread-safe.
class CudaProgram {
 public:
  CudaProgram(ProgramBuilder* builder, const ComputeTarget& target, Fusions fusions)
      : builder_(*builder), target_(target), fusions_(std::move(fusions)) {}

  ProgramBuilder& builder() { return builder_; }
  const ComputeTarget& target() const { return target_; }
  const Node& node(int index) const { return builder_.graph().nodes()[index]; }
  NodeName name(int index) const {
    return {.op = node(index).op->type(), .layer = node(index).layer};
  }

  // What nodes are computed along with; see FindCudaFusions.
  const Fusions& fusions() const { return fusions_; }

  // The steps that follow are of this node.
  void BeginNode(int index) { current_ = index; }
  // What the node's kernels best read, by its layer's dtype policy.
  ComputeDtype reads_as(int index) const;
  // As reads_as, but float32 where the caller reads the first output: what that is to be kept as.
  ComputeDtype kept_as(int index) const;

  Shape shape(ValueId value) const { return builder_.shape(value); }
  int64_t count(ValueId value) const { return ElementCount(shape(value)); }
  // The value as elements of this type: where it is kept as others, a copy, which is made once.
  TensorId tensor(ValueId value, ComputeDtype type = ComputeDtype::kFloat32);
  // For a value that is about to be computed; float32 where the caller reads it.
  TensorId Output(ValueId value, ComputeDtype type = ComputeDtype::kFloat32);
  // Of the node's first output or, where it is computed along with a ReLU, of that one's: what else
  // reads what goes into the ReLU is its gradient, to which the result tells as much.
  TensorId FusedOutput(int index, ComputeDtype type);
  // `value` lies where `other` does, as what that is kept as.
  void Bind(ValueId value, ValueId other);
  // Memory for `count` numbers that live from the first to the last step that is given it.
  template <typename Element = float>
  TensorId Scratch(int64_t count) {
    return builder_.AddTensor(count * static_cast<int64_t>(sizeof(Element)));
  }
  TensorId ScratchOf(ComputeDtype type, int64_t count);

  // What a step makes of variables, or of statistics, for several nodes, the backward pass of a
  // layer as the forward one; -1 until the first of them has added that step. To be kept costs less
  // than a kernel's start, and memory of no more than the variables, beside all activations.
  //
  // A convolution's kernel as cuDNN's filter.
  TensorId& filter(ValueId kernel, ComputeDtype type) {
    return filters_.try_emplace({kernel, type}, -1).first->second;
  }
  // gamma / sqrt(variance + epsilon); gamma may be kNoValue, which is 1.
  TensorId& normalization_factor(ValueId variance, ValueId gamma, double epsilon) {
    return factors_.try_emplace({variance, gamma, epsilon}, -1).first->second;
  }
  // By which tap the windows of a max pooling read their maxima (kernels/pool2d.h), by the
  // pooling's output: what forward leaves for its gradient.
  void SetTapsOf(ValueId pooled, TensorId taps) { taps_of_[pooled] = taps; }
  TensorId taps_of(ValueId pooled) const { return taps_of_.at(pooled); }

 private:
  // Whether it leaves the program: a gradient that is pushed, the prediction, the losses.
  bool leaves(ValueId value) const;
  ComputeDtype type_of(TensorId tensor) const;

  ProgramBuilder& builder_;
  const ComputeTarget& target_;
  const Fusions fusions_;
  int current_ = -1;
  std::map<TensorId, ComputeDtype> types_;                        // all others are float32
  std::map<std::pair<TensorId, ComputeDtype>, TensorId> copies_;  // of the same numbers, by type
  std::map<std::pair<ValueId, ComputeDtype>, TensorId> filters_;
  std::map<std::tuple<ValueId, ValueId, double>, TensorId> factors_;
  std::map<ValueId, TensorId> taps_of_;
};

// Calls use(element, width) with the widest pack, too, that rows of `columns` of them are made of.
template <typename Use>
void WithPacks(ComputeDtype type, int64_t columns, const Use& use) {
  WithElement(type, [&]<typename Element>(Element element) {
    WithWidth<Element>(columns, [&](auto width) { use(element, width); });
  });
}

// Rows and columns of what is normalized, multiplied or summed along its last axis.
struct MatrixExtents {
  explicit MatrixExtents(const Shape& shape)
      : rows(ElementCount(Shape(shape.begin(), shape.end() - 1))), columns(shape.back()) {}
  int64_t rows, columns;
};

// Those of the plan's fusions that the kernels here compute along: the ReLU behind a convolution
// with a bias, where it is not cut off above, the one behind a normalization, and its gradient, and
// behind a normalization the sum with a residual branch and the ReLU of that, with its gradient,
// and the sum of two gradients before that one; and the gradient of a bias before a normalization.
// The nodes are of one compute dtype, but for the last.
Fusions FindCudaFusions(const Plan& plan);

// Adds the steps of a node.
using StepFactory = absl::Status (*)(int node_index, CudaProgram& program);

#define KERNEL(TYPE) absl::Status TYPE(int node_index, CudaProgram& program);
#include "worker/compute/cuda/kernel_list.inc"
#undef KERNEL

}  // namespace shoal::cuda
