#include "common/model/ops/dense.h"

#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {
namespace {

// Of `tensors`, the operands and what they give.
absl::Status AddProduct(int index, const MatrixProduct& product, std::vector<TensorId> tensors,
                        CudaProgram& program) {
  MatrixProducts& products = *program.target().products;
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                         products.Make(product, program.name(index)));
  tensors.push_back(program.Scratch<char>(products.workspace_bytes()));
  program.builder().AddStep(std::move(kernel), std::move(tensors));
  return absl::OkStatus();
}

}  // namespace

absl::Status Dense(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents x(program.shape(node.inputs[0]));
  std::vector<TensorId> tensors;
  for (const ValueId input : node.inputs) tensors.push_back(program.tensor(input));
  tensors.push_back(program.Output(node.outputs[0]));
  return AddProduct(index,
                    {.bias = node.inputs.size() == 3,
                     .m = x.rows,
                     .n = program.shape(node.outputs[0]).back(),
                     .k = x.columns},
                    std::move(tensors), program);
}

absl::Status DenseBackwardData(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents dy(program.shape(node.inputs[0]));
  return AddProduct(index,
                    {.transpose_b = true,
                     .m = dy.rows,
                     .n = program.shape(node.outputs[0]).back(),
                     .k = dy.columns},
                    {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
                     program.Output(node.outputs[0])},
                    program);
}

absl::Status DenseBackwardWeights(int index, CudaProgram& program) {
  const Node& node = program.node(index);
  const MatrixExtents x(program.shape(node.inputs[0]));
  return AddProduct(
      index,
      {.transpose_a = true, .m = x.columns, .n = program.shape(node.inputs[1]).back(), .k = x.rows},
      {program.tensor(node.inputs[0]), program.tensor(node.inputs[1]),
       program.Output(node.outputs[0])},
      program);
}

}  // namespace shoal::cuda
