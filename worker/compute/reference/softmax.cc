#include "common/model/ops/softmax.h"

#include "worker/compute/op_math/softmax_rows.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Softmax(const Arguments& a) {
  const int64_t columns = a.output().columns();
  for (int64_t i = 0; i < a.output().size(); i += columns) {
    SoftmaxRow(static_cast<const SoftmaxOp&>(a.op).kind, a.inputs[0].data + i, columns,
               a.output().data + i);
  }
}

void SoftmaxBackward(const Arguments& a) {
  const int64_t columns = a.output().columns();
  for (int64_t i = 0; i < a.output().size(); i += columns) {
    SoftmaxBackwardRow(static_cast<const SoftmaxBackwardOp&>(a.op).kind, a.inputs[0].data + i,
                       a.inputs[1].data + i, columns, a.output().data + i);
  }
}

}  // namespace shoal::reference
