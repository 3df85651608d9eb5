#include <limits>
#include <numeric>

#include "common/model/ops/gather.h"
#include "common/model/ops/rescale.h"
#include "tests/worker/compute/cuda/kernel_test.h"
#include "worker/compute/cuda/kernels/gather.h"
#include "worker/compute/cuda/kernels/gradient_check.h"
#include "worker/compute/cuda/kernels/rescale.h"

namespace shoal::cuda {
namespace {

class MemoryKernelsTest : public KernelTest {};
SHOAL_KERNEL_TEST_SUITE(MemoryKernelsTest);

TEST_P(MemoryKernelsTest, RescaledBytesEqualTheReference) {
  ForElements(10, [&]<typename Element>(Element) {
    const int64_t pixels = Flip() ? Pick(1, 300) : 8 * Pick(1, 50), channels = Pick(1, 4);
    const int64_t size = pixels * channels;
    const auto x = Empty<uint8_t>(size);
    for (int64_t i = 0; i < size; ++i) x[i] = static_cast<uint8_t>(Pick(0, 255));
    const auto scale = Normal<float>(channels), offset = Normal<float>(channels);
    const auto y = Empty<Element>(size);
    WithWidth<Element>(size, [&](auto width) {
      Run(RescaleBytesKernel<Element, width>{x.data(), scale.data(), offset.data(),
                                             static_cast<int32_t>(channels), size, y.data()});
    });
    RescaleOp op;
    op.scale.assign(scale.data(), scale.data() + channels);
    op.offset.assign(offset.data(), offset.data() + channels);
    ExpectNear(y, Reference(op, {{x.doubles(), {pixels, channels}}})[0], 1e-6, "y");
  });
}

TEST_P(MemoryKernelsTest, GatherEqualsTheReference) {
  ForElements(10, [&]<typename Element>(Element) {
    const int64_t rows = Pick(1, 40), count = Pick(1, 200);
    const int64_t columns = Flip() ? Pick(1, 20) : 8 * Pick(1, 10);
    const auto table = Normal<float>(rows * columns), ids = Classes(count, rows);
    const auto y = Empty<Element>(count * columns), dy = Normal<Element>(count * columns);
    // Some that stand for no row: forward is for the next test.
    const auto some = Classes(count, rows);
    for (int64_t i = 0; i < count; i += 5) some[i] = Flip() ? -1.0f : rows + 0.0f;

    const auto keys = Empty<int32_t>(count), places = Empty<int32_t>(count);
    Run(RowKeysKernel{some.data(), rows, count, keys.data()});
    std::iota(places.data(), places.data() + count, 0);
    std::stable_sort(places.data(), places.data() + count,
                     [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
    std::stable_sort(keys.data(), keys.data() + count);
    const auto dtable = Zeros<float>(rows * columns);
    const int32_t columns32 = static_cast<int32_t>(columns);
    WithWidth<Element>(columns, [&](auto width) {
      Run(GatherBackwardKernel<Element, width>{keys.data(), places.data(), dy.data(), rows,
                                               columns32, count, dtable.data()});
      constexpr int kTableWidth = std::min<int>(width, 4);  // of float
      Run(GatherKernel<Element, kTableWidth>{table.data(), ids.data(), rows, columns32, count,
                                             y.data()});
    });
    const Shape table_shape = {rows, columns};
    ExpectNear(y,
               Reference(GatherOp(), {{table.doubles(), table_shape}, {ids.doubles(), {count}}})[0],
               0, "y");
    GatherBackwardOp backward;
    backward.table_shape = table_shape;
    ExpectNear(
        dtable,
        Reference(backward, {{some.doubles(), {count}}, {dy.doubles(), {count, columns}}})[0], 2e-6,
        "dtable");
  });
}

TEST_P(MemoryKernelsTest, AnIdOfNoRowGivesNotANumber) {
  const auto table = Normal<float>(6), ids = Normal<float>(4), y = Empty<float>(8);
  ids[0] = 2;
  ids[1] = 3;
  ids[2] = -1;
  ids[3] = std::numeric_limits<float>::quiet_NaN();
  Run(GatherKernel<float, 1>{table.data(), ids.data(), 3, 2, 4, y.data()});
  EXPECT_EQ(y[0], table[4]);
  EXPECT_EQ(y[1], table[5]);
  for (int i = 2; i < 8; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST_P(MemoryKernelsTest, GradientsAreUnscaledAndChecked) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const float put : {0.0f, kInfinite, -kInfinite, std::nanf("")}) {
    SCOPED_TRACE(put);
    const int64_t size = 4 * Pick(1, 5000), grid = Pick(1, 9);
    const auto gradients = Normal<float>(size), loss_scale = Empty<float>(1);
    loss_scale[0] = 1024;
    gradients[Pick(0, size - 1)] = put;
    Doubles expected = gradients.doubles();
    double squares = 0;
    for (double& value : expected) {
      value /= 1024;
      squares += value * value;
    }
    const auto partial = Empty<GradientCheck>(grid), result = Empty<GradientCheck>(1);
    Run(GradientCheckKernel<4>{gradients.data(), size, loss_scale.data(), grid, partial.data()});
    Run(GradientCheckSumKernel{partial.data(), grid, result.data()});
    EXPECT_EQ(result[0].not_finite_sum > 0, !std::isfinite(put));
    if (!std::isfinite(put)) continue;
    ExpectNear(gradients, expected, 0, "gradients");
    EXPECT_NEAR(result[0].square_sum, squares, 1e-5 * squares);
  }
}

// Finite they are, although the square of one is not.
TEST_P(MemoryKernelsTest, LargeGradientsAreFinite) {
  const auto gradients = Zeros<float>(8), loss_scale = Empty<float>(1);
  loss_scale[0] = 1;
  gradients[3] = 1e30f;
  const auto partial = Empty<GradientCheck>(2), result = Empty<GradientCheck>(1);
  Run(GradientCheckKernel<4>{gradients.data(), 8, loss_scale.data(), 2, partial.data()});
  Run(GradientCheckSumKernel{partial.data(), 2, result.data()});
  EXPECT_EQ(result[0].not_finite_sum, 0);
}

}  // namespace
}  // namespace shoal::cuda
