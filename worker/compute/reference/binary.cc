#include "common/model/ops/binary.h"

#include "worker/compute/op_math/elementwise_functions.h"
#include "worker/compute/reference/kernels.h"
#include "worker/compute/reference/repeated_index.h"

namespace shoal::reference {

void Binary(const Arguments& a) {
  const View<double>& output = a.output();
  WithConstantKind(static_cast<const BinaryOp&>(a.op).kind, [&](auto kind) {
    for (int64_t i = 0; i < output.size(); ++i) {
      output.data[i] = shoal::Binary<kind()>(
          a.inputs[0].data[RepeatedIndex(i, a.inputs[0].shape, output.shape)],
          a.inputs[1].data[RepeatedIndex(i, a.inputs[1].shape, output.shape)]);
    }
  });
}

}  // namespace shoal::reference
