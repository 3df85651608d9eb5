#include "common/model/ops/dropout.h"

#include "worker/compute/op_math/dropout_mask.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Forward and backward are the same function: a product with the mask.
template <typename DropoutOpType>
void ApplyDropout(const Arguments& a) {
  const auto& op = static_cast<const DropoutOpType&>(a.op);
  const DropoutMask mask(a.context, op.layer_seed, op.rate);
  const int64_t first = a.context.first_example * (a.output().size() / a.output().shape[0]);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const double x = a.inputs[0].data[i];
    a.output().data[i] = a.training ? x * mask.Factor<double>(op.groups.Of(first + i)) : x;
  }
}

}  // namespace

void Dropout(const Arguments& a) { ApplyDropout<DropoutOp>(a); }

void DropoutBackward(const Arguments& a) { ApplyDropout<DropoutBackwardOp>(a); }

}  // namespace shoal::reference
