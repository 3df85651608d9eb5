#include "common/model/ops/loss.h"
#include "common/model/ops/softmax.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/loss.h"
#include "worker/compute/cuda/kernels/softmax.h"

namespace shoal::cuda {
namespace {

class SoftmaxKernelsTest : public KernelTest {
 protected:
  int64_t PickColumns() { return Flip() ? Pick(1, 20) : Pick(60, 300); }

  // Makes probabilities of what is there, not divided by their sum: some below what is clipped, and
  // sometimes a single one. None is nearly 1, where float and double would differ about clipping.
  template <typename Element>
  void DrawProbabilities(const Buffer<Element>& x, int64_t first, int64_t columns) {
    const bool single = Pick(0, 3) == 0;
    const int64_t one = first + Pick(0, columns - 1);
    for (int64_t i = first; i < first + columns; ++i) {
      const float value = single ? i == one : std::exp(std::min(4 * ToFloat(x[i]), 0.0f));
      x[i] = FromFloat<Element>(value);
    }
    if (!single) x[first] = x[first + 1] = FromFloat<Element>(1);
  }
};
SHOAL_KERNEL_TEST_SUITE(SoftmaxKernelsTest);

TEST_P(SoftmaxKernelsTest, EqualTheReference) {
  ForElements(12, [&]<typename Element>(Element) {
    SoftmaxOp op;
    op.kind = Flip() ? SoftmaxOp::Kind::kSoftmax : SoftmaxOp::Kind::kLogSoftmax;
    SoftmaxBackwardOp backward;
    backward.kind = op.kind;
    const int64_t rows = Pick(1, 70), columns = PickColumns();
    const auto x = Normal<Element>(rows * columns, 200, 5), dy = Normal<Element>(rows * columns);
    const auto y = DrawPlaces(x), dx = DrawPlaces(dy);
    WithGroup(columns, [&](auto group) {
      Run(SoftmaxKernel<Element, group>{op.kind, y.from, y.to.data(), rows, columns});
      Run(SoftmaxBackwardKernel<Element, group>{op.kind, y.to.data(), dx.from, dx.to.data(), rows,
                                                columns});
    });
    const Shape shape = {rows, columns};
    ExpectNear(y.to, Reference(op, {{x.doubles(), shape}})[0], 5e-6, "y");
    // Of a single column it is nothing.
    ExpectNear(dx.to, Reference(backward, {{y.to.doubles(), shape}, {dy.doubles(), shape}})[0],
               1e-5, "dx", 1);
  });
}

TEST_P(SoftmaxKernelsTest, CrossEntropyEqualsTheReference) {
  ForElements(24, [&]<typename Element>(Element) {
    LossOp op;
    const bool sparse = Flip();
    op.attributes.kind = sparse ? LossAttributes::Kind::kSparseCategoricalCrossentropy
                                : LossAttributes::Kind::kCategoricalCrossentropy;
    op.attributes.from_logits = Flip();
    if (!sparse && Flip()) op.attributes.label_smoothing = 0.1;
    LossBackwardOp backward;
    backward.attributes = op.attributes;
    const int64_t examples = Pick(1, 30), inner = Flip() ? 1 : Pick(2, 5);
    const int64_t rows = examples * inner, columns = PickColumns() + 1;
    const auto x = Normal<Element>(rows * columns, 0, 3);
    if (!op.attributes.from_logits) {
      for (int64_t row = 0; row < rows; ++row) DrawProbabilities(x, row * columns, columns);
    }
    const auto target =
        sparse ? Classes(rows, columns) : Normal<float>(rows * columns, 1.0f / columns, 0.01f);
    const auto row_loss = Empty<float>(rows), loss = Empty<float>(examples);
    const auto gradient = DrawPlaces(x);
    const bool with_gradient = Pick(0, 3) > 0, with_loss = !with_gradient || Pick(0, 3) > 0;
    const float scale = 1.0f / rows;
    WithGroup(columns, [&](auto group) {
      Run(CrossEntropyKernel<Element, group>{
          op.attributes, gradient.from, target.data(), with_loss ? row_loss.data() : nullptr,
          with_gradient ? gradient.to.data() : nullptr, rows, columns, scale});
    });
    const Shape shape = inner == 1 ? Shape{rows, columns} : Shape{examples, inner, columns};
    const Operand prediction = {x.doubles(), shape};
    const Operand targets = {target.doubles(),
                             sparse ? Shape(shape.begin(), shape.end() - 1) : shape};
    if (with_loss) {
      Run(ExampleLossKernel{row_loss.data(), examples, inner, loss.data()});
      ExpectNear(loss, Reference(op, {prediction, targets})[0], 1e-5, "loss", 0.01);
    }
    if (with_gradient) {
      ExpectNear(gradient.to, Reference(backward, {prediction, targets})[0], 1e-5, "gradient",
                 scale);
    }
  });
}

}  // namespace
}  // namespace shoal::cuda
