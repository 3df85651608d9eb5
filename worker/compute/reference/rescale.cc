#include "common/model/ops/rescale.h"

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Rescale(const Arguments& a) {
  const auto& op = static_cast<const RescaleOp&>(a.op);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const int64_t channel = i % a.output().columns();
    const double scale = op.scale[op.scale.size() == 1 ? 0 : channel];
    const double offset = op.offset[op.offset.size() == 1 ? 0 : channel];
    a.output().data[i] = a.inputs[0].data[i] * scale + offset;
  }
}

}  // namespace shoal::reference
