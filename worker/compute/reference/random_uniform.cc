#include "common/model/ops/random_uniform.h"

#include "worker/compute/op_math/step_random.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void RandomUniform(const Arguments& a) {
  const auto& op = static_cast<const RandomUniformOp&>(a.op);
  const StepRandom random(a.context, op.layer_seed);
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const int64_t count = a.output().columns();
    a.output().data[i] = UniformDraw(op, random, a.context.first_example + i / count, i % count);
  }
}

}  // namespace shoal::reference
