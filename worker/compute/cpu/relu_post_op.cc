#include "worker/compute/cpu/relu_post_op.h"

namespace shoal::cpu {

ValueId AppendRelu(int index, const CpuProgram& program, dnnl::primitive_attr* attributes) {
  const std::vector<Node>& nodes = program.graph().nodes();
  const int relu = program.fusions().relu[index];
  if (relu < 0) return nodes[index].outputs[0];
  const double max_value = static_cast<const ActivationOp&>(*nodes[relu].op).attributes.max_value;
  dnnl::post_ops post_ops;
  if (max_value < 0) {
    post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  } else {
    post_ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, 0.0f,
                            static_cast<float>(max_value));
  }
  attributes->set_post_ops(post_ops);
  return nodes[relu].outputs[0];
}

}  // namespace shoal::cpu
