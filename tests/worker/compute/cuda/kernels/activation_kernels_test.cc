#include "common/model/ops/activation.h"
#include "common/model/ops/binary.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/activation.h"
#include "worker/compute/cuda/kernels/binary.h"

namespace shoal::cuda {
namespace {

class ActivationKernelsTest : public KernelTest {};
SHOAL_KERNEL_TEST_SUITE(ActivationKernelsTest);

// Whether there is this kind. One that is new is asked for by the compiler.
bool Exists(ActivationAttributes::Kind kind) {
  using Kind = ActivationAttributes::Kind;
  switch (kind) {
    case Kind::kRelu:
    case Kind::kTanh:
    case Kind::kSigmoid:
    case Kind::kElu:
    case Kind::kSelu:
    case Kind::kSoftplus:
    case Kind::kSoftsign:
    case Kind::kSilu:
    case Kind::kGelu:
    case Kind::kExponential:
    case Kind::kLeakyRelu:
    case Kind::kHardSigmoid:
    case Kind::kHardSilu:
    case Kind::kHardTanh:
    case Kind::kHardShrink:
    case Kind::kSoftShrink:
    case Kind::kTanhShrink:
    case Kind::kLogSigmoid:
    case Kind::kMish:
    case Kind::kSquareplus:
    case Kind::kSparsePlus:
      return true;
  }
  return false;
}

TEST_P(ActivationKernelsTest, EqualTheReference) {
  using Kind = ActivationAttributes::Kind;
  for (Kind kind = {}; Exists(kind); kind = static_cast<Kind>(static_cast<int>(kind) + 1)) {
    SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind));
    ActivationOp op;
    op.attributes.kind = kind;
    const bool shrinks = kind == Kind::kHardShrink || kind == Kind::kSoftShrink;
    if (shrinks || Flip()) op.attributes.threshold = 0.5;
    if (Flip()) op.attributes.max_value = 1.5;
    op.attributes.negative_slope = Flip() ? 0.25 : 0.0;
    ActivationBackwardOp backward;
    backward.attributes = op.attributes;
    ForElements(2, [&]<typename Element>(Element) {
      const int64_t size = Flip() ? Pick(1, 2000) : 8 * Pick(1, 300);
      const auto x = Normal<Element>(size, 0, 2), dy = Normal<Element>(size);
      const auto y = DrawPlaces(x), dx = DrawPlaces(dy);
      WithWidth<Element>(size, [&](auto width) {
        Run(ActivationKernel<Element, width>{y.from, y.to.data(), size, op.attributes});
        Run(ActivationBackwardKernel<Element, width>{x.data(), y.to.data(), dx.from, dx.to.data(),
                                                     size, op.attributes});
      });
      const Shape shape = {size};
      ExpectNear(y.to, Reference(op, {{x.doubles(), shape}})[0], 2e-6, "y");
      ExpectNear(
          dx.to,
          Reference(backward,
                    {{x.doubles(), shape}, {y.to.doubles(), shape}, {dy.doubles(), shape}})[0],
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
