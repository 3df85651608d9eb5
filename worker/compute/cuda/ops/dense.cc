#include "common/model/ops/dense.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {
namespace {

// `tensors` are the operands and the result.
absl::Status AddProduct(const Node& node, const MatrixProduct& product,
                        std::vector<TensorId> tensors, CudaProgramBuilder& program) {
  MatrixProducts& products = *program.target().products;
  SHOAL_ASSIGN_OR_RETURN(
      std::unique_ptr<Kernel> kernel,
      products.Make(product, program.builder().plan().may_measure(), program.name(node)));
  tensors.push_back(program.Scratch<char>(products.workspace_bytes()));
  program.builder().AddStep(std::move(kernel), std::move(tensors));
  return absl::OkStatus();
}

}  // namespace

absl::Status Dense(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents x(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  std::vector<TensorId> tensors;
  for (const ValueId input : node.inputs) tensors.push_back(program.tensor(input, kept));
  tensors.push_back(program.Output(node.outputs[0], kept));
  return AddProduct(node,
                    {.operands = kept,
                     .result = kept,
                     .bias = node.inputs.size() == 3,
                     .m = x.rows,
                     .n = program.shape(node.outputs[0]).back(),
                     .k = x.columns},
                    std::move(tensors), program);
}

absl::Status DenseBackwardData(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents dy(program.shape(node.inputs[0]));
  const ComputeDtype kept = program.stored_dtype(node);
  return AddProduct(node,
                    {.operands = kept,
                     .result = kept,
                     .transpose_b = true,
                     .m = dy.rows,
                     .n = program.shape(node.outputs[0]).back(),
                     .k = dy.columns},
                    {program.tensor(node.inputs[0], kept), program.tensor(node.inputs[1], kept),
                     program.Output(node.outputs[0], kept)},
                    program);
}

absl::Status DenseBackwardWeights(const Node& node, CudaProgramBuilder& program) {
  const MatrixExtents x(program.shape(node.inputs[0]));
  // The result is pushed in most models: keep it in float32, as summed.
  const ComputeDtype operands = node.compute_dtype;
  return AddProduct(node,
                    {.operands = operands,
                     .transpose_a = true,
                     .m = x.columns,
                     .n = program.shape(node.inputs[1]).back(),
                     .k = x.rows},
                    {program.tensor(node.inputs[0], operands),
                     program.tensor(node.inputs[1], operands), program.Output(node.outputs[0])},
                    program);
}

}  // namespace shoal::cuda
