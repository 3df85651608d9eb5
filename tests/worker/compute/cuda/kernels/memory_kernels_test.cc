#include <limits>
#include <numeric>
#include <set>

#include "common/model/ops/gather.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/rescale.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/add_part.h"
#include "worker/compute/cuda/kernels/gather.h"
#include "worker/compute/cuda/kernels/gradient_check.h"
#include "worker/compute/cuda/kernels/pad.h"
#include "worker/compute/cuda/kernels/rescale.h"
#include "worker/compute/cuda/kernels/strided.h"

namespace shoal::cuda {
namespace {

struct GradientPlaces {
  ModelLayout layout;
  std::vector<GradientRanges> ranges;
};
GradientPlaces PlacesOf(const std::vector<Variable>& variables) {
  const ModelLayout layout(variables);
  return {layout, RangesOfGradients(variables, layout)};
}

class MemoryKernelsTest : public KernelTest {
 protected:
  GradientCheck Check(const Buffer<float>& gradients, const GradientPlaces& places, float scale) {
    const int64_t grid = Pick(1, 9), blocks = grid * static_cast<int64_t>(places.ranges.size());
    const auto loss_scale = Empty<float>(1);
    loss_scale[0] = scale;
    const auto partial = Empty<GradientCheck>(blocks), result = Empty<GradientCheck>(1);
    for (size_t i = 0; i < places.ranges.size(); ++i) {
      Run(GradientCheckKernel{gradients.data(), places.ranges[i], loss_scale.data(), grid,
                              partial.data() + grid * static_cast<int64_t>(i)});
    }
    Run(GradientCheckSumKernel{partial.data(), blocks, result.data()});
    return result[0];
  }
};
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

// Boxes in boxes, whose rows and whose distances are whole packs, halves of them, or neither.
TEST_P(MemoryKernelsTest, BoxesAreMovedAsByTheReference) {
  std::set<int> padded, cropped;  // in packs of so many bytes
  ForElements(30, [&]<typename Element>(Element) {
    const int64_t unit = int64_t{1} << Pick(0, 4), apart = int64_t{1} << Pick(0, 4);
    const Shape box = {Pick(1, 3), Pick(1, 4), Pick(1, 5), unit * Pick(1, 3)};
    const bool channels = Flip();  // have margins, too
    PadOp pad;
    pad.margins = {{Pick(0, 2), Pick(0, 2), channels ? apart * Pick(0, 2) : 0},
                   {Pick(0, 2), Pick(0, 2), channels ? apart * Pick(0, 2) : 0}};
    const Shape shape = (*pad.InferShapes({box}))[0];
    SCOPED_TRACE(testing::Message() << ShapeToString(box) << " in " << ShapeToString(shape));
    const auto x = Normal<Element>(ElementCount(box));
    const auto y = Empty<Element>(ElementCount(shape)), again = Empty<Element>(x.size());
    const PaddedAxes axes = PaddedAxesOf(box, pad.margins.before, shape).value();
    WithFittingWidth<Element>([&](int width) { return axes.HasPacks(width); },
                              [&]<int width>(std::integral_constant<int, width>) {
                                padded.insert(width * static_cast<int>(sizeof(Element)));
                                Run(PadKernel<Element, width>(axes, x.data(), y.data()));
                              });
    ExpectNear(y, Reference(pad, {{x.doubles(), box}})[0], 0, "padded");

    const StridedAxes to_axes = BoxAxes(box, box).value(), from_axes = BoxAxes(box, shape).value();
    int64_t first = 0;
    for (size_t axis = 1; axis < 4; ++axis)
      first += pad.margins.before[axis - 1] * StridesOf(shape)[axis];
    const auto fits = [&](int width) {
      return from_axes.HasPacks(width) && to_axes.HasPacks(width) && first % width == 0;
    };
    WithFittingWidth<Element>(fits, [&]<int width>(std::integral_constant<int, width>) {
      cropped.insert(width * static_cast<int>(sizeof(Element)));
      Run(StridedCopyKernel<Element, width>{y.data() + first, PackedAxes<width>(from_axes),
                                            again.data(), PackedAxes<width>(to_axes), x.size()});
    });
    ExpectNear(again, x.doubles(), 0, "cropped");
  });
  EXPECT_EQ(padded, (std::set<int>{2, 4, 8, 16}));
  EXPECT_EQ(cropped, padded);
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
    const int64_t size = Pick(1, 20000);
    const GradientPlaces places = PlacesOf({{.name = "dense", .shape = {size}}});
    const auto gradients = Normal<float>(places.layout.size);
    gradients[Pick(0, size - 1)] = put;
    const Doubles before = gradients.doubles();
    const GradientCheck check = Check(gradients, places, 1024);
    EXPECT_EQ(check.not_finite_sum > 0, !std::isfinite(put));
    if (!std::isfinite(put)) continue;
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_EQ(gradients[i], before[i] / 1024);
      squares += gradients[i] * gradients[i];
    }
    EXPECT_NEAR(check.square_sum, squares, 1e-5 * squares);
  }
}

// What a layout has between and besides the gradients is no gradient: gaps, here not-a-number, a
// frozen variable, of which nothing is there, and the sample of a moving average.
TEST_P(MemoryKernelsTest, OnlyGradientsAreUnscaledAndChecked) {
  std::vector<Variable> variables;
  for (int i = 0; i < 200; ++i) {  // more than one kernel takes
    const int64_t kind = Pick(0, 3);
    variables.push_back({.name = std::to_string(i),
                         .shape = {Flip() ? Pick(1, 100) : 16 * Pick(1, 200)},
                         .rule = kind == 0   ? UpdateRule::kFrozen
                                 : kind == 1 ? UpdateRule::kMovingAverage
                                             : UpdateRule::kOptimizer});
  }
  const GradientPlaces places = PlacesOf(variables);
  const auto gradients = Empty<float>(places.layout.size);  // not-a-number
  double squares = 0;
  for (size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].rule == UpdateRule::kFrozen) continue;
    const auto [offset, size] = places.layout.variables[v];
    for (int64_t i = offset; i < offset + size; ++i) {
      gradients[i] = static_cast<float>(Pick(1, 9));
      if (variables[v].rule == UpdateRule::kOptimizer) squares += std::pow(gradients[i] / 4, 2);
    }
  }
  const Doubles before = gradients.doubles();
  const GradientCheck check = Check(gradients, places, 4);
  EXPECT_EQ(check.not_finite_sum, 0);
  EXPECT_NEAR(check.square_sum, squares, 1e-5 * squares);
  for (size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].rule == UpdateRule::kFrozen) continue;
    const double factor = variables[v].rule == UpdateRule::kOptimizer ? 0.25 : 1;
    const auto [offset, size] = places.layout.variables[v];
    for (int64_t i = offset; i < offset + size; ++i) {
      ASSERT_EQ(gradients[i], factor * before[i]) << "variable " << v;
    }
  }
}

// What was there before the first part, not-a-number here, is nothing.
TEST_P(MemoryKernelsTest, GradientsOfPartsAreAddedUpByTheirShares) {
  for (int run = 0; run < 10; ++run) {
    const int64_t size = Flip() ? Pick(1, 300) : 4 * Pick(1, 100);
    const auto sum = Empty<float>(size);
    Doubles expected(size);
    for (int part = 0; part < 3; ++part) {
      const auto gradient = Normal<float>(size);
      const auto context = Empty<RunContext>(1);
      context[0] = {.first_example = 8,
                    .share = 0.25f * static_cast<float>(1 + part),
                    .begins_sums = part == 0};
      WithWidth<float>(size, [&]<int width>(std::integral_constant<int, width>) {
        Run(AddPartKernel<width>{context.data(), gradient.data(), size, sum.data()});
      });
      for (int64_t i = 0; i < size; ++i) expected[i] += context[0].share * gradient[i];
    }
    ExpectNear(sum, expected, 1e-6, "sum");
  }
}

TEST_P(MemoryKernelsTest, AModelMayHaveNoGradients) {
  const GradientPlaces places =
      PlacesOf({{.name = "frozen", .shape = {20}, .rule = UpdateRule::kFrozen}});
  const GradientCheck check = Check(Empty<float>(places.layout.size), places, 4);
  EXPECT_EQ(check.not_finite_sum, 0);
  EXPECT_EQ(check.square_sum, 0);
}

// On the CPU; on a device it is an error of the launch.
TEST(PackDeathTest, AnAddressIsAMultipleOfThePack) {
  alignas(16) float values[8] = {};
  EXPECT_DEATH(Load<4>(values + 1), "");
  EXPECT_DEATH(Store(Pack<4>{}, values + 2), "");
  Store(Load<4>(values + 4), values);
}

// Finite they are, although the square of one is not.
TEST_P(MemoryKernelsTest, LargeGradientsAreFinite) {
  const GradientPlaces places = PlacesOf({{.name = "dense", .shape = {8}}});
  const auto gradients = Zeros<float>(places.layout.size);
  gradients[3] = 1e30f;
  EXPECT_EQ(Check(gradients, places, 1).not_finite_sum, 0);
}

}  // namespace
}  // namespace shoal::cuda
