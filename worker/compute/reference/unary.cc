#include "common/model/ops/unary.h"

#include "worker/compute/op_math/elementwise_functions.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Unary(const Arguments& a) {
  const auto& op = static_cast<const UnaryOp&>(a.op);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    a.output().data[i] = shoal::Unary(op, a.inputs[0].data[i]);
  }
}

}  // namespace shoal::reference
