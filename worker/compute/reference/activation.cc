#include "common/model/ops/activation.h"

#include "worker/compute/op_math/activation_functions.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Activation(const Arguments& a) {
  const auto& op = static_cast<const ActivationOp&>(a.op);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    a.output().data[i] = Activate(op.attributes, a.inputs[0].data[i]);
  }
}

void ActivationBackward(const Arguments& a) {
  const auto& op = static_cast<const ActivationBackwardOp&>(a.op);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const double x = a.inputs[0].data[i], y = a.inputs[1].data[i], dy = a.inputs[2].data[i];
    a.output().data[i] = dy * ActivationDerivative(op.attributes, x, y);
  }
}

}  // namespace shoal::reference
