#pragma once

#include <dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "worker/compute/program/program_builder.h"

namespace shoal::cpu {

// A oneDNN layout of an image. Its axes are numbered B, C, H, W, for any order in memory.
class DnnlLayout : public TensorLayout {
 public:
  explicit DnnlLayout(const dnnl::memory::desc& desc) : desc(desc) {}
  const dnnl::memory::desc desc;
};

// The builder for the CPU backend's kernel factories. It adds oneDNN's primitives and the layouts
// of images between them to ProgramBuilder. Not thread-safe; lives while one program is built. Its
// methods throw dnnl::error, which CpuBackend catches.
class CpuProgramBuilder {
 public:
  // One memory argument of a primitive.
  struct Argument {
    int index;  // DNNL_ARG_SRC, ...
    TensorId tensor;
    dnnl::memory::desc desc;
  };
  // Rows and columns of a value whose last axis is the columns.
  struct MatrixExtents {
    int64_t rows, columns;
  };
  // The data that a pooling keeps for its gradient.
  struct Pooling {
    dnnl::pooling_v2_forward::primitive_desc forward;
    TensorId workspace = -1;  // -1: average pooling has none
  };

  // Max products for which OpenBLAS multiplies small matrices. For one such matrix, oneDNN touches
  // tens of KiB of private memory (generated code, packed copies). If many workers share caches,
  // this takes longer than the arithmetic.
  static constexpr int64_t kSmallMatmul = 1 << 16;

  CpuProgramBuilder(ProgramBuilder* builder, const dnnl::engine& engine, bool prefer_onednn_matmul)
      : builder_(*builder),
        engine_(engine),
        stream_(engine),
        prefer_onednn_matmul_(prefer_onednn_matmul) {}

  ProgramBuilder& builder() { return builder_; }
  const dnnl::engine& engine() const { return engine_; }
  // Whether oneDNN multiplies matrices with this number of products here, instead of OpenBLAS.
  bool prefer_onednn_matmul(int64_t products) const {
    return prefer_onednn_matmul_ && products > kSmallMatmul;
  }
  static MatrixExtents ExtentsOf(const Shape& shape) {
    return {ElementCount(Shape(shape.begin(), shape.end() - 1)), shape.back()};
  }
  // Attributes that make Shoal allocate the scratchpad, so that it is in the arena.
  static dnnl::primitive_attr Attributes();

  // The type to store the node's first output in. A kernel may also store float32, and does where
  // it has no fast loop for another type.
  ComputeDtype stored_dtype(const Node& node) const {
    return builder_.plan().element_type(node.outputs[0]);
  }

  // The type in which `output` shares the tensor of `input`: the tensor's own, but float32 if the
  // caller reads `output`.
  ComputeDtype shared_dtype(ValueId input, ValueId output) const {
    if (builder_.plan().wanted_outside(output)) return ComputeDtype::kFloat32;
    return builder_.tensor_info(builder_.tensor(input)).type;
  }

  // Layouts include the type of the elements: a reorder also converts.
  static dnnl::memory::data_type DataTypeOf(ComputeDtype type) {
    return type == ComputeDtype::kBfloat16 ? dnnl::memory::data_type::bf16
                                           : dnnl::memory::data_type::f32;
  }
  static ComputeDtype DtypeOf(const dnnl::memory::desc& desc) {
    return desc.data_type() == dnnl::memory::data_type::bf16 ? ComputeDtype::kBfloat16
                                                             : ComputeDtype::kFloat32;
  }
  // The same layout with elements of another type.
  static dnnl::memory::desc WithType(dnnl::memory::desc desc, ComputeDtype type);
  // The layout of the image `value` in its tensor.
  dnnl::memory::desc ImageDesc(ValueId value) const;
  // The row-major layout [B, H, W, C] of an image of this shape.
  static dnnl::memory::desc RowMajorImage(const Shape& shape,
                                          ComputeDtype type = ComputeDtype::kFloat32);
  // A layout that leaves the choice to the primitive, for an image of this shape.
  static dnnl::memory::desc AnyImage(const Shape& shape,
                                     ComputeDtype type = ComputeDtype::kFloat32);

  // Returns the tensor of `value` in the wanted layout. Reorders it if it has another one.
  TensorId ImageIn(ValueId value, const dnnl::memory::desc& wanted);
  TensorId RowMajor(ValueId value, ComputeDtype type = ComputeDtype::kFloat32);
  // The same with elements of the type that the value is stored in, for kernels that read both.
  TensorId RowMajorAsStored(ValueId value) {
    return RowMajor(value, builder_.tensor_info(builder_.tensor(value)).type);
  }
  // Returns `tensor` in another layout: itself, or a copy, which is made only once.
  TensorId Reordered(TensorId tensor, const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  // Appends a copy of `from` to `to` in another layout.
  void AddReorder(TensorId from, const dnnl::memory::desc& from_desc, TensorId to,
                  const dnnl::memory::desc& to_desc);
  // Returns the tensor for an image that the next step computes. Its type must be float32 if the
  // caller reads the value.
  TensorId ImageOutput(ValueId value, const dnnl::memory::desc& desc);
  // Stores an image that a step has computed in `computed`, as row-major elements of this type. The
  // value's own shape must be the image's, which an average without its axes does not have.
  void StoreRowMajor(ValueId value, TensorId computed, const dnnl::memory::desc& desc,
                     ComputeDtype type);

  // Appends a primitive. `scratchpad` is its scratchpad_desc(). An argument's desc must be the
  // layout of its tensor, where the tensor has one.
  void AddPrimitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
                    std::vector<Argument> arguments);

  // By the pooling's output value.
  std::unordered_map<ValueId, Pooling>& poolings() { return poolings_; }

 private:
  struct Reorder {
    TensorId from;
    dnnl::memory::desc to_desc;
    TensorId to;
  };

  ProgramBuilder& builder_;
  const dnnl::engine engine_;
  const dnnl::stream stream_;
  const bool prefer_onednn_matmul_;  // for large matrices
  std::unordered_map<ValueId, Pooling> poolings_;
  std::vector<Reorder> reorders_;
};

// Adds the steps of a node.
using StepFactory = absl::Status (*)(const Node& node, CpuProgramBuilder& program);

// Each is in the file of the op's family.
#define KERNEL(TYPE) absl::Status TYPE(const Node& node, CpuProgramBuilder& program);
#define TYPED(TYPE) KERNEL(TYPE)
#define FUSED(TYPE, FACTORY)
#include "worker/compute/cpu/kernel_list.inc"
#undef FUSED
#undef TYPED
#undef KERNEL

}  // namespace shoal::cpu
