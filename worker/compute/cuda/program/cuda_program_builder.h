#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/cuda/cublaslt/matrix_products.h"
#include "worker/compute/cuda/cudnn/convolutions.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/cuda/kernels/with_element.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/program/program_builder.h"

namespace shoal::cuda {

class Stream;

// The device that a backend's kernels run on, and the libraries that also compute there.
struct ComputeTarget {
  // Null, in tests: the kernels run on the calling thread, in the memory of the host.
  const Stream* stream = nullptr;
  // Enough blocks to keep the whole device busy: four times its multiprocessors.
  int64_t blocks = 1;
  // For kernels limited to two resident blocks per SM by their registers. Each of their threads has
  // enough memory accesses in flight that two blocks keep the SM busy.
  int64_t few_blocks() const { return std::max<int64_t>(1, blocks / 2); }
  MatrixProducts* products = nullptr;
  Convolutions* convolutions = nullptr;
  // Called for each node that `convolutions` does not support, with the reason. Plain sums then
  // compute it.
  std::function<void(const NodeName& node, const absl::Status& why)> on_plain_sums = nullptr;
};

// The builder for the factories of the backend's kernels. All tensors are row-major, in float32,
// bfloat16 or float16. A factory asks for each tensor in the type that its kernel takes. Lives
// while one program is built. Not thread-safe.
class CudaProgramBuilder {
 public:
  CudaProgramBuilder(ProgramBuilder* builder, const ComputeTarget& target)
      : builder_(*builder), target_(target) {}

  ProgramBuilder& builder() { return builder_; }
  const ComputeTarget& target() const { return target_; }
  static NodeName name(const Node& node) {
    return {.op = ModelTypeOf(*node.op), .layer = node.layer};
  }

  // Assigns the following conversions to this node of the plan.
  void BeginNode(const Node& node) { current_ = &node; }
  // The type to store the node's first output in. Kernels read best what is in the node's compute
  // dtype, which may differ.
  ComputeDtype stored_dtype(const Node& node) const {
    return builder_.plan().element_type(node.outputs[0]);
  }

  Shape shape(ValueId value) const { return builder_.shape(value); }
  int64_t count(ValueId value) const { return ElementCount(shape(value)); }
  // The value in this type. If it is stored in another type, adds a conversion, once.
  TensorId tensor(ValueId value, ComputeDtype type = ComputeDtype::kFloat32);
  // A tensor for a value that is about to be computed (ProgramBuilder::Output).
  TensorId Output(ValueId value, ComputeDtype type = ComputeDtype::kFloat32) {
    return builder_.Output(value, type);
  }
  // Places `value` where `other` lies, in the same type; in float32 if the caller reads it.
  void Bind(ValueId value, ValueId other);
  // Memory for `count` numbers, live from the first to the last step that uses it. Never bound to a
  // value: for that, use ScratchOf.
  template <typename Element = float>
  TensorId Scratch(int64_t count) {
    return builder_.AddTensor(count * static_cast<int64_t>(sizeof(Element)));
  }
  TensorId ScratchOf(ComputeDtype type, int64_t count) {
    return builder_.AddTensor(count * SizeOf(type), type);
  }

  // Tensors that a step computes from variables or statistics for several nodes, such as the
  // forward and the backward pass of a layer. Each is -1 until the first of these nodes has added
  // the step. Keeping one costs less than starting another kernel. It takes no more memory than the
  // variables, which is little compared to all activations.
  //
  // A convolution's kernel as cuDNN's filter.
  TensorId& filter(ValueId kernel, ComputeDtype type) {
    return filters_.try_emplace({kernel, type}, -1).first->second;
  }
  // gamma / sqrt(variance + epsilon); gamma may be kNoValue, which is 1.
  TensorId& normalization_factor(ValueId variance, ValueId gamma, double epsilon) {
    return factors_.try_emplace({variance, gamma, epsilon}, -1).first->second;
  }
  // The taps from which the windows of a max pooling took their maxima (kernels/pool2d.h), by the
  // pooling's output. The forward pass leaves them for the gradient.
  void SetTapsOf(ValueId pooled, TensorId taps) { taps_of_[pooled] = taps; }
  TensorId taps_of(ValueId pooled) const { return taps_of_.at(pooled); }

 private:
  ProgramBuilder& builder_;
  const ComputeTarget& target_;
  const Node* current_ = nullptr;
  std::map<std::pair<TensorId, ComputeDtype>, TensorId> copies_;  // conversions, by type
  std::map<std::pair<ValueId, ComputeDtype>, TensorId> filters_;
  std::map<std::tuple<ValueId, ValueId, double>, TensorId> factors_;
  std::map<ValueId, TensorId> taps_of_;
};

// Calls use(element, width) with the widest pack that divides a row of `columns` elements.
template <typename Use>
void WithPacks(ComputeDtype type, int64_t columns, const Use& use) {
  WithElement(type, [&]<typename Element>(Element element) {
    WithWidth<Element>(columns, [&](auto width) { use(element, width); });
  });
}

// Rows and columns of a tensor that is normalized, multiplied or summed along its last axis.
struct MatrixExtents {
  explicit MatrixExtents(const Shape& shape)
      : rows(ElementCount(Shape(shape.begin(), shape.end() - 1))), columns(shape.back()) {}
  int64_t rows, columns;
};

}  // namespace shoal::cuda
