#include "common/optimizer/clipping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsNan;
using testing::Pointwise;

using Kind = Clipping::Kind;

struct Gradients {
  std::vector<float> a, b;
  void Clip(Kind kind, double limit) { Clipping{kind, limit}.Clip({a, b}); }
};

TEST(ClippingTest, NoneChangesNothing) {
  Gradients gradients{{3, -4}, {100}};
  gradients.Clip(Kind::kNone, 0);
  EXPECT_THAT(gradients.a, ElementsAre(3, -4));
  EXPECT_THAT(gradients.b, ElementsAre(100));
}

TEST(ClippingTest, ByValueEachElement) {
  Gradients gradients{{3, -4, 0.25}, {NAN, -INFINITY}};
  gradients.Clip(Kind::kByValue, 2);
  EXPECT_THAT(gradients.a, ElementsAre(2, -2, 0.25));
  EXPECT_THAT(gradients.b, ElementsAre(IsNan(), -2));
}

TEST(ClippingTest, ByNormEachVariable) {
  Gradients gradients{{3, -4}, {0.5, 0.5}};
  gradients.Clip(Kind::kByNorm, 1);
  EXPECT_THAT(gradients.a, Pointwise(testing::FloatEq(), {0.6f, -0.8f}));
  EXPECT_THAT(gradients.b, ElementsAre(0.5, 0.5));
}

TEST(ClippingTest, ByTheNormOfAll) {
  Gradients gradients{{3, 0}, {0, 4}};
  gradients.Clip(Kind::kByGlobalNorm, 1);
  EXPECT_THAT(gradients.a, Pointwise(testing::FloatEq(), {0.6f, 0.0f}));
  EXPECT_THAT(gradients.b, Pointwise(testing::FloatEq(), {0.0f, 0.8f}));
  Gradients zero{{0}, {0}};
  zero.Clip(Kind::kByGlobalNorm, 1);
  EXPECT_THAT(zero.a, ElementsAre(0));
}

// As in Keras: a step that is ruined shows.
TEST(ClippingTest, AnInfiniteNormMakesNotANumbers) {
  Gradients gradients{{INFINITY, 1}, {2}};
  gradients.Clip(Kind::kByGlobalNorm, 1);
  EXPECT_THAT(gradients.a, ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(gradients.b, ElementsAre(IsNan()));
  Gradients by_variable{{NAN, 1}, {2}};
  by_variable.Clip(Kind::kByNorm, 1);
  EXPECT_THAT(by_variable.a, ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(by_variable.b, ElementsAre(1));
}

// Of as many elements as no vector has, and of numbers whose squares are beyond float.
TEST(ClippingTest, TheNormIsThatOfAllElements) {
  for (const size_t size : {1, 15, 16, 17, 1000}) {
    std::vector<float> gradient(size, 1e25f);
    Clipping{Kind::kByNorm, 3}.Clip({gradient});
    for (const float each : gradient) {
      ASSERT_FLOAT_EQ(each, static_cast<float>(3 / std::sqrt(static_cast<double>(size)))) << size;
    }
  }
}

}  // namespace
}  // namespace shoal
