#include "common/model/ops/dropout.h"

#include "worker/compute/dropout_mask.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

// Forward and backward are the same function: a product with the mask.
void ApplyDropout(const Arguments& a, double rate, uint64_t layer_seed) {
  const DropoutMask mask(a.job_seed, a.step, layer_seed, rate);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const double x = a.inputs[0].data[i];
    a.output().data[i] = a.training ? x * mask.Factor<double>(i) : x;
  }
}

}  // namespace

void Dropout(const Arguments& a) {
  const auto& op = static_cast<const DropoutOp&>(a.op);
  ApplyDropout(a, op.rate, op.layer_seed);
}

void DropoutBackward(const Arguments& a) {
  const auto& op = static_cast<const DropoutBackwardOp&>(a.op);
  ApplyDropout(a, op.rate, op.layer_seed);
}

}  // namespace shoal::reference
