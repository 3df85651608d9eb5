#include <limits>

#include "common/model/ops/activation.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/ops/layer_normalization.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/batch_normalization.h"
#include "worker/compute/cuda/kernels/layer_normalization.h"

namespace shoal::cuda {
namespace {

class NormalizationKernelsTest : public KernelTest {
 protected:
  // Columns that packs are made of, or not.
  int64_t PickColumns(int64_t least) { return Flip() ? Pick(least, 50) : 8 * Pick(1, 40); }
};
SHOAL_KERNEL_TEST_SUITE(NormalizationKernelsTest);

void Add(Doubles& sum, const Doubles& other) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
}

TEST_P(NormalizationKernelsTest, BatchNormalizationEqualsTheReference) {
  ForElements(12, [&]<typename Element>(Element) {
    const int64_t rows = Pick(16, 400), columns = PickColumns(1), size = rows * columns;
    BatchNormalizationOp op;
    op.scale = Flip();
    op.center = Flip();
    op.frozen = Pick(0, 3) == 0;
    const bool with_residual = Flip();
    ActivationOp activation;
    Clamp clamp;
    const int64_t kind = Pick(0, 2);  // none, ReLU, ReLU6
    if (kind > 0) clamp.low = 0;
    if (kind == 2) activation.attributes.max_value = clamp.high = 1.5;
    // Whether dy is left for others to read, and whether it is a sum then.
    const bool leaves = with_residual || (kind == 0 && Flip()), of_two = leaves && Flip();
    SCOPED_TRACE(testing::Message()
                 << rows << " x " << columns << ", residual " << with_residual << ", clamp " << kind
                 << ", frozen " << op.frozen << ", of two " << of_two);

    const auto x = Normal<Element>(size, 3, 2), residual = Normal<Element>(size);
    const auto gamma = Normal<float>(columns, 1, 0.2f), beta = Normal<float>(columns);
    const auto moving_mean = Normal<float>(columns, 3),
               moving_variance = Normal<float>(columns, 5, 0.2f);

    // By the reference.
    const Shape shape = {rows, columns}, channels = {columns};
    std::vector<Operand> inputs = {{x.doubles(), shape},
                                   {moving_mean.doubles(), channels},
                                   {moving_variance.doubles(), channels}};
    if (op.scale) inputs.push_back({gamma.doubles(), channels});
    if (op.center) inputs.push_back({beta.doubles(), channels});
    const std::vector<Doubles> expected = Reference(op, inputs);
    Doubles sum = expected[0];
    if (with_residual) Add(sum, residual.doubles());
    const Doubles y_expected = kind == 0 ? sum : Reference(activation, {{sum, shape}})[0];

    // By the kernels.
    const bool over_residual = with_residual && Flip();
    const auto y = DrawPlaces(over_residual ? residual : x);
    const Element* const residual_used = !with_residual  ? nullptr
                                         : over_residual ? y.from
                                                         : residual.data();
    const auto dresidual = Empty<Element>(size);
    const auto mean = op.frozen ? Normal<float>(0) : Empty<float>(columns);
    const auto variance = op.frozen ? Normal<float>(0) : Empty<float>(columns);
    const auto factor = Empty<float>(columns);
    float* const mean_used = op.frozen ? moving_mean.data() : mean.data();
    float* const variance_used = op.frozen ? moving_variance.data() : variance.data();
    const float* const gamma_used = op.scale ? gamma.data() : nullptr;
    const float epsilon = static_cast<float>(op.epsilon);
    const auto dgamma = Empty<float>(columns), dbeta = Empty<float>(columns);
    const auto by_mean = Empty<float>(columns), by_variance = Empty<float>(columns);
    const bool wants_dbias = !op.frozen && Flip();
    const auto dbias = Empty<float>(wants_dbias ? columns : 0);
    const auto dy = Normal<Element>(size), other = Normal<Element>(of_two ? size : 0);
    // Where a rounding more or less decides whether the activation passes it, nothing is to pass.
    for (int64_t i = 0; i < size; ++i) {
      if (std::abs(sum[i] - clamp.low) < 0.02 || std::abs(sum[i] - clamp.high) < 0.02) {
        dy[i] = FromFloat<Element>(0);
        if (of_two) other[i] = dy[i];
      }
    }
    const auto dx = DrawPlaces(dy);
    WithWidth<Element>(columns, [&](auto width) {
      const ColumnSlices slices(rows, columns / width, Pick(1, 80));
      const ColumnSlices elements =
          Flip() ? slices : ColumnSlices::OfElements(rows, columns / width);
      const auto partial = Empty<float>(slices.count * 2 * columns);
      if (op.frozen) {
        Run(NormalizationFactorKernel{variance_used, gamma_used, epsilon, columns, factor.data()});
      } else {
        Run(ColumnMomentsKernel<Element, width>{x.data(), slices, columns, partial.data()});
        Run(BatchNormalizationStatisticsKernel<Element>{x.data(), partial.data(), slices, columns,
                                                        gamma_used, epsilon, mean_used,
                                                        variance_used, factor.data()});
      }
      const Normalization<width> normalization = {mean_used, factor.data(),
                                                  op.center ? beta.data() : nullptr};
      const auto normalize = [&](auto adds) {
        Run(BatchNormalizationKernel<Element, width, adds>{
            over_residual ? x.data() : y.from, residual_used, normalization, clamp, elements,
            static_cast<int32_t>(columns), y.to.data()});
      };
      if (with_residual) {
        normalize(std::true_type());
      } else {
        normalize(std::false_type());
      }
      const auto add_up = [&]<bool adds>(std::bool_constant<adds>) {
        const ClampedGradient<Element, width, adds> gradient = {
            dx.from, other.data(), with_residual ? y.to.data() : nullptr, normalization, clamp};
        Run(ColumnSumsKernel<BatchNormalizationBackwardTerms<Element, width, adds>>{
            {x.data(), gradient, leaves ? dresidual.data() : nullptr},
            slices,
            columns,
            partial.data()});
      };
      if (of_two) {
        add_up(std::true_type());
      } else {
        add_up(std::false_type());
      }
      Run(BatchNormalizationCoefficientsKernel{partial.data(), slices.count, rows, columns,
                                               variance_used, epsilon, op.frozen, dgamma.data(),
                                               dbeta.data(), by_mean.data(), by_variance.data(),
                                               wants_dbias ? dbias.data() : nullptr});
      Run(BatchNormalizationBackwardKernel<Element, width>{
          x.data(), leaves ? dresidual.data() : dx.from, normalization, leaves ? Clamp() : clamp,
          by_mean.data(), by_variance.data(), elements, static_cast<int32_t>(columns),
          dx.to.data()});
    });
    ExpectNear(y.to, y_expected, 1e-5, "y");
    if (!op.frozen) {
      ExpectNear(mean, expected[1], 1e-6, "mean");
      ExpectNear(variance, expected[2], 1e-5, "variance");
    }

    // Backward by the reference.
    BatchNormalizationBackwardOp backward;
    backward.scale = op.scale;
    backward.frozen = op.frozen;
    ActivationBackwardOp activation_backward;
    activation_backward.attributes = activation.attributes;
    Doubles gradient = dy.doubles();
    // As an Add of its own would leave it.
    for (int64_t i = 0; of_two && i < size; ++i)
      gradient[i] = ToFloat(FromFloat<Element>(ToFloat(dy[i]) + ToFloat(other[i])));
    const Doubles passed =
        kind == 0 ? gradient
                  : Reference(activation_backward,
                              {{sum, shape}, {y_expected, shape}, {gradient, shape}})[0];
    std::vector<Operand> backward_inputs = {
        {x.doubles(), shape}, {passed, shape}, {expected[1], channels}, {expected[2], channels}};
    if (op.scale) backward_inputs.push_back({gamma.doubles(), channels});
    const std::vector<Doubles> gradients = Reference(backward, backward_inputs);
    ExpectNear(dx.to, gradients[0], 2e-5, "dx");
    ExpectNear(dgamma, gradients[1], 2e-5, "dgamma");
    ExpectNear(dbeta, gradients[2], 2e-5, "dbeta");
    if (leaves) ExpectNear(dresidual, passed, 0, "dresidual");
    // What the reference's dx sums up to is its rounding.
    for (int64_t column = 0; column < dbias.size(); ++column) {
      double sum = 0;
      for (int64_t row = 0; row < rows; ++row) sum += gradients[0][row * columns + column];
      ASSERT_NEAR(sum, 0, 1e-9) << column;
      ASSERT_EQ(dbias[column], 0) << column;
    }
  });
}

// The zero that is known beforehand is not-a-number where a gradient has overflowed, as what is
// summed up would be.
TEST_P(NormalizationKernelsTest, AZeroGradientShowsWhatIsNotFinite) {
  constexpr int64_t kColumns = 3;
  // Sums, and sums of products, of two slices.
  const auto partial = Normal<float>(2 * 2 * kColumns), variance = Normal<float>(kColumns, 5, 0.2f);
  partial[0] = std::numeric_limits<float>::infinity();
  partial[3 * kColumns + 1] = std::nanf("");
  const auto results = Empty<float>(4 * kColumns), dbias = Empty<float>(kColumns);
  float* const to = results.data();
  Run(BatchNormalizationCoefficientsKernel{partial.data(), 2, 10, kColumns, variance.data(), 1e-3f,
                                           false, to, to + kColumns, to + 2 * kColumns,
                                           to + 3 * kColumns, dbias.data()});
  EXPECT_TRUE(std::isnan(dbias[0]) && std::isnan(dbias[1])) << dbias[0] << ", " << dbias[1];
  EXPECT_EQ(dbias[2], 0);
}

// The result too, which has overflowed: its gradient is to be seen by the check for what is not
// finite.
TEST_P(NormalizationKernelsTest, AnUnclampedValuePassesAnyGradient) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const float y : {kInfinite, -kInfinite, std::nanf("")}) {
    EXPECT_TRUE(Clamp{}.Passes(y)) << y;
  }
  EXPECT_TRUE(Clamp{.low = 0}.Passes(kInfinite));
  EXPECT_FALSE(Clamp{.low = 0}.Passes(-kInfinite));
  const Clamp relu6 = {.low = 0, .high = 6};
  EXPECT_FALSE(relu6.Passes(kInfinite) || relu6.Passes(-kInfinite));
}

// The mean may be a thousand times the deviation, and some rows may lie far from the others, the
// first of all or of a slice, too: float alone would lose the variance, and differences from such a
// row. Each in a column of its own.
TEST_P(NormalizationKernelsTest, MomentsAreExactWhereverTheValuesLie) {
  for (const int64_t rows : {1, 2, 300, 3000}) {
    const int64_t columns = 8, blocks = Flip() ? Pick(1, 9) : Pick(33, 90);
    const auto x = Normal<float>(rows * columns, 1000);
    const ColumnSlices slices(rows, columns / 4, blocks);
    SCOPED_TRACE(testing::Message() << rows << " rows in " << slices.count << " slices");
    for (int64_t row = 0; row < rows; ++row) x[row * columns] -= 1000;
    x[1] = 0;
    x[2] = -1e6f;
    for (int64_t slice = 0; slice < slices.count; ++slice) {
      x[slice * slices.slice_rows * columns + 3] = 0;
    }
    x[(rows - 1) * columns + 4] = 1e6f;
    for (int64_t row = 0; row < rows; ++row) x[row * columns + 5] = 1000.1f;
    const auto mean = Empty<float>(columns), variance = Empty<float>(columns);
    const auto factor = Empty<float>(columns), partial = Empty<float>(slices.count * 2 * columns);
    Run(ColumnMomentsKernel<float, 4>{x.data(), slices, columns, partial.data()});
    Run(BatchNormalizationStatisticsKernel<float>{x.data(), partial.data(), slices, columns,
                                                  nullptr, 1e-3f, mean.data(), variance.data(),
                                                  factor.data()});
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0, squares = 0;
      for (int64_t row = 0; row < rows; ++row) sum += x[row * columns + column];
      for (int64_t row = 0; row < rows; ++row) {
        squares += std::pow(x[row * columns + column] - sum / rows, 2);
      }
      const double expected = squares / rows;
      // Half a unit in the last place of the mean, and what is lost beside the deviation.
      EXPECT_NEAR(mean[column], sum / rows,
                  1e-7 * std::abs(sum / rows) + 1e-4 * std::sqrt(expected))
          << column;
      EXPECT_NEAR(variance[column], expected, 1e-4 * expected + 1e-12) << column;
    }
  }
}

TEST_P(NormalizationKernelsTest, LayerNormalizationEqualsTheReference) {
  ForElements(12, [&]<typename Element>(Element) {
    const int64_t rows = Pick(1, 200), columns = PickColumns(8), size = rows * columns;
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    LayerNormalizationOp op;
    op.scale = Flip();
    op.center = Flip();
    LayerNormalizationBackwardOp backward;
    backward.scale = op.scale;
    const auto x = Normal<Element>(size, 3, 2), dy = Normal<Element>(size);
    const auto gamma = Normal<float>(columns, 1, 0.2f), beta = Normal<float>(columns);
    const auto y = DrawPlaces(x);
    const auto dx = Empty<Element>(size);
    const auto row_mean = Empty<float>(rows), row_factor = Empty<float>(rows);
    const auto dgamma = Empty<float>(columns), dbeta = Empty<float>(columns);
    const float* const gamma_used = op.scale ? gamma.data() : nullptr;
    const float epsilon = static_cast<float>(op.epsilon);
    WithGroup(columns, [&](auto group) {
      Run(LayerNormalizationKernel<Element, group>{y.from, gamma_used,
                                                   op.center ? beta.data() : nullptr, y.to.data(),
                                                   rows, columns, epsilon});
      Run(LayerNormalizationBackwardKernel<Element, group>{
          x.data(), dy.data(), gamma_used, dx.data(), row_mean.data(), row_factor.data(), rows,
          columns, epsilon});
    });
    WithWidth<Element>(columns, [&](auto width) {
      const ColumnSlices slices(rows, columns / width, Pick(1, 80));
      const auto partial = Empty<float>(slices.count * 2 * columns);
      Run(ColumnSumsKernel<LayerNormalizationTerms<Element, width>>{
          {x.data(), dy.data(), row_mean.data(), row_factor.data()},
          slices,
          columns,
          partial.data()});
      Run(SumOfSlicesKernel<2>{
          partial.data(), slices.count, columns, {dgamma.data(), dbeta.data()}});
    });
    const Shape shape = {rows, columns}, channels = {columns};
    std::vector<Operand> inputs = {{x.doubles(), shape}};
    std::vector<Operand> backward_inputs = {{x.doubles(), shape}, {dy.doubles(), shape}};
    if (op.scale) inputs.push_back({gamma.doubles(), channels});
    if (op.scale) backward_inputs.push_back({gamma.doubles(), channels});
    if (op.center) inputs.push_back({beta.doubles(), channels});
    ExpectNear(y.to, Reference(op, inputs)[0], 1e-5, "y");
    const std::vector<Doubles> gradients = Reference(backward, backward_inputs);
    ExpectNear(dx, gradients[0], 2e-5, "dx");
    ExpectNear(dgamma, gradients[1], 2e-5, "dgamma");
    ExpectNear(dbeta, gradients[2], 2e-5, "dbeta");
  });
}

}  // namespace
}  // namespace shoal::cuda
