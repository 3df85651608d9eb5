// The fusions that the kernels here support.

#include <string>

#include "common/model/ops/activation.h"
#include "worker/compute/cuda/cuda_program.h"

namespace shoal::cuda {
namespace {

// cuDNN has fast engines for a bias followed by a ReLU without a maximum. (cuBLASLt has such an
// epilogue, too, but does not document its result for not-a-number.)
bool TakesRelu(const Node& node, const ActivationAttributes& relu) {
  const std::string type = node.op->type();
  return type == "BatchNormalization" ||
         (type == "Conv2D" && node.inputs.size() == 3 && relu.max_value < 0);
}

}  // namespace

Fusions FindCudaFusions(const Plan& plan) {
  const std::vector<Node>& nodes = plan.graph().nodes();
  const Fusions found = FindFusions(plan, {.poolings_take_gradients = false,
                                           .normalizations_take_sums = true,
                                           .normalizations_take_zeros = true});
  Fusions taken = {.relu = std::vector<int>(nodes.size(), -1),
                   .residual_sum = std::vector<int>(nodes.size(), -1),
                   .cut_off = std::vector<Fusions::CutOff>(nodes.size()),
                   .residual_gradient = std::vector<int>(nodes.size(), -1),
                   .gradient_sum = std::vector<int>(nodes.size(), -1),
                   .zero_gradient = found.zero_gradient,  // zeros are the same in every type
                   .absorbed = std::vector<bool>(nodes.size(), false)};
  const auto of_one_type = [&](int one, int other) {
    return nodes[one].compute_dtype == nodes[other].compute_dtype;
  };
  for (const int index : plan.nodes()) {
    if (const int zero = taken.zero_gradient[index]; zero >= 0) taken.absorbed[zero] = true;
    if (const int sum = found.residual_sum[index]; sum >= 0 && of_one_type(index, sum)) {
      taken.residual_sum[index] = sum;
      taken.absorbed[sum] = true;
    }
    if (const int relu = found.relu[index];
        relu >= 0 && of_one_type(index, relu) &&
        (taken.absorbed[index] ||  // a sum fused into the normalization before it
         TakesRelu(nodes[index], static_cast<const ActivationOp&>(*nodes[relu].op).attributes))) {
      taken.relu[index] = relu;
      taken.absorbed[relu] = true;
    }
    if (const int gradient = found.cut_off[index].relu_gradient;
        gradient >= 0 && of_one_type(index, gradient)) {
      taken.cut_off[index] = found.cut_off[index];
      taken.absorbed[gradient] = true;
    }
    if (const int gradient = found.residual_gradient[index];
        gradient >= 0 && of_one_type(index, gradient)) {
      taken.residual_gradient[index] = gradient;
      taken.absorbed[gradient] = true;
    }
    if (const int sum = found.gradient_sum[index];
        sum >= 0 && of_one_type(index, sum) &&
        taken.residual_gradient[index] == found.residual_gradient[index]) {
      taken.gradient_sum[index] = sum;
      taken.absorbed[sum] = true;
    }
  }
  return taken;
}

}  // namespace shoal::cuda
