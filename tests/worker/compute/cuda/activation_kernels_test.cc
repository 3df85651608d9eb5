#include "common/model/ops/activation.h"
#include "common/model/ops/binary.h"
#include "tests/worker/compute/cuda/kernel_test.h"
#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/kernels/binary.h"

namespace shoal::cuda {
namespace {

class ActivationKernelsTest : public KernelTest {};
SHOAL_KERNEL_TEST_SUITE(ActivationKernelsTest);

TEST_P(ActivationKernelsTest, EqualTheReference) {
  for (int kind = 0; kind <= static_cast<int>(ActivationAttributes::Kind::kSparsePlus); ++kind) {
    SCOPED_TRACE(testing::Message() << "kind " << kind);
    ActivationOp op;
    op.attributes.kind = static_cast<ActivationAttributes::Kind>(kind);
    if (Flip()) op.attributes.max_value = 1.5;
    op.attributes.negative_slope = Flip() ? 0.25 : 0.0;
    ActivationBackwardOp backward;
    backward.attributes = op.attributes;
    ForElements(2, [&]<typename Element>(Element) {
      const int64_t size = Flip() ? Pick(1, 2000) : 8 * Pick(1, 300);
      const auto x = Normal<Element>(size, 0, 2), dy = Normal<Element>(size);
      const auto y = Empty<Element>(size), dx = Empty<Element>(size);
      WithWidth<Element>(size, [&](auto width) {
        Run(ActivationKernel<Element, width>{x.data(), y.data(), size, op.attributes});
        Run(ActivationBackwardKernel<Element, width>{x.data(), y.data(), dy.data(), dx.data(), size,
                                                     op.attributes});
      });
      const Shape shape = {size};
      ExpectNear(y, Reference(op, {{x.doubles(), shape}})[0], 2e-6, "y");
      ExpectNear(dx,
                 Reference(backward,
                           {{x.doubles(), shape}, {y.doubles(), shape}, {dy.doubles(), shape}})[0],
                 1e-5, "dx");
    });
  }
}

TEST_P(ActivationKernelsTest, BinaryOnesEqualTheReference) {
  for (int kind = 0; kind <= static_cast<int>(BinaryOp::Kind::kGreater); ++kind) {
    SCOPED_TRACE(testing::Message() << "kind " << kind);
    BinaryOp op;
    op.kind = static_cast<BinaryOp::Kind>(kind);
    ForElements(2, [&]<typename Element>(Element) {
      const int64_t size = Flip() ? Pick(1, 2000) : 8 * Pick(1, 300);
      const auto a = Normal<Element>(size), b = Normal<Element>(size, 5), y = Empty<Element>(size);
      b[0] = a[0];
      WithWidth<Element>(size, [&](auto width) {
        WithConstantKind(op.kind, [&](auto constant) {
          Run(BinaryKernel<constant(), Element, width>{a.data(), b.data(), size, y.data()});
        });
      });
      const Shape shape = {size};
      ExpectNear(y, Reference(op, {{a.doubles(), shape}, {b.doubles(), shape}})[0], 1e-6, "y");
    });
  }
}

}  // namespace
}  // namespace shoal::cuda
