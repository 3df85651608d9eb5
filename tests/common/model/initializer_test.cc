#include "common/model/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal {
namespace {

constexpr uint64_t kJobSeed = 7;

std::vector<float> Whole(const Initializer& initializer, const Shape& shape,
                         const std::string& name = "layer/kernel", uint64_t job_seed = kJobSeed) {
  std::vector<float> values(ElementCount(shape));
  InitializeRows(initializer, name, shape, job_seed, 0, shape.empty() ? 1 : shape[0], values);
  return values;
}

struct Moments {
  double mean = 0;
  double stddev = 0;
  double least = 0;
  double most = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments result;
  double squares = 0;
  for (const float value : values) {
    result.mean += value;
    squares += static_cast<double>(value) * value;
  }
  result.mean /= static_cast<double>(values.size());
  result.stddev =
      std::sqrt(squares / static_cast<double>(values.size()) - result.mean * result.mean);
  result.least = *std::min_element(values.begin(), values.end());
  result.most = *std::max_element(values.begin(), values.end());
  return result;
}

// Deviations are of 40,000 or more draws: tolerances are about five times the standard error.
void ExpectMoments(const std::vector<float>& values, double mean, double stddev) {
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, mean, 0.025 * stddev);
  EXPECT_NEAR(moments.stddev, stddev, 0.025 * stddev);
}

const Initializer kGlorotUniform = {.kind = Initializer::Kind::kVarianceScaling, .a = 1};

TEST(InitializerTest, Constant) {
  for (const float value : Whole({.kind = Initializer::Kind::kConstant, .a = 2.5}, {3, 4})) {
    EXPECT_EQ(value, 2.5f);
  }
  EXPECT_EQ(Whole({}, {}), std::vector<float>{0});
}

TEST(InitializerTest, Uniform) {
  const std::vector<float> values =
      Whole({.kind = Initializer::Kind::kUniform, .a = -1, .b = 3}, {200, 300});
  ExpectMoments(values, 1, 4 / std::sqrt(12));
  const Moments moments = MomentsOf(values);
  EXPECT_GE(moments.least, -1);
  EXPECT_LE(moments.most, 3);
  EXPECT_LT(moments.least, -0.99);
  EXPECT_GT(moments.most, 2.99);
}

TEST(InitializerTest, Normal) {
  const std::vector<float> values =
      Whole({.kind = Initializer::Kind::kNormal, .a = 1, .b = 0.5}, {200, 300});
  ExpectMoments(values, 1, 0.5);
  // About 4.55 % lie beyond two deviations, 0.27 % beyond three.
  const auto beyond = [&](double deviations) {
    return static_cast<double>(
               std::count_if(values.begin(), values.end(),
                             [&](float value) { return std::abs(value - 1) > 0.5 * deviations; })) /
           static_cast<double>(values.size());
  };
  EXPECT_NEAR(beyond(2), 0.0455, 0.005);
  EXPECT_NEAR(beyond(3), 0.0027, 0.0012);
}

TEST(InitializerTest, TruncatedNormal) {
  const std::vector<float> values =
      Whole({.kind = Initializer::Kind::kTruncatedNormal, .a = 0, .b = 0.1}, {200, 300});
  // Not corrected here: the deviation of what is left of the distribution is smaller.
  ExpectMoments(values, 0, 0.1 * 0.87962566103423978);
  EXPECT_LE(MomentsOf(values).most, 0.2f);
  EXPECT_GT(MomentsOf(values).most, 0.19);
}

TEST(InitializerTest, VarianceScalingFollowsKerasFormulas) {
  // A convolution kernel of 3 x 5 from 20 to 200 channels.
  const Shape kernel = {3, 5, 20, 200};
  const double fan_in = 3 * 5 * 20;
  const double fan_out = 3 * 5 * 200;
  const std::vector<float> glorot = Whole(kGlorotUniform, kernel);
  ExpectMoments(glorot, 0, std::sqrt(2 / (fan_in + fan_out)));
  EXPECT_LE(MomentsOf(glorot).most, std::sqrt(6 / (fan_in + fan_out)));
  EXPECT_GT(MomentsOf(glorot).most, 0.99 * std::sqrt(6 / (fan_in + fan_out)));

  const Initializer he_normal = {.kind = Initializer::Kind::kVarianceScaling,
                                 .a = 2,
                                 .fan_mode = Initializer::FanMode::kFanIn,
                                 .distribution = Initializer::Distribution::kTruncatedNormal};
  const std::vector<float> he = Whole(he_normal, kernel);
  ExpectMoments(he, 0, std::sqrt(2 / fan_in));
  EXPECT_LE(MomentsOf(he).most, 2 * std::sqrt(2 / fan_in) / 0.87962566103423978 + 1e-6);

  const Initializer fan_out_normal = {
      .kind = Initializer::Kind::kVarianceScaling,
      .a = 3,
      .fan_mode = Initializer::FanMode::kFanOut,
      .distribution = Initializer::Distribution::kUntruncatedNormal};
  ExpectMoments(Whole(fan_out_normal, kernel), 0, std::sqrt(3 / fan_out));
  // A Dense kernel, a vector.
  ExpectMoments(Whole(kGlorotUniform, {100, 500}), 0, std::sqrt(2.0 / 600));
  ExpectMoments(Whole(kGlorotUniform, {50000}), 0, std::sqrt(1.0 / 50000));
}

TEST(InitializerTest, ValuesDoNotDependOnTheCut) {
  const Shape shape = {37, 3, 5};
  for (const Initializer::Kind kind :
       {Initializer::Kind::kConstant, Initializer::Kind::kUniform, Initializer::Kind::kNormal,
        Initializer::Kind::kTruncatedNormal, Initializer::Kind::kVarianceScaling,
        Initializer::Kind::kOrthogonal}) {
    const Initializer initializer = {.kind = kind, .a = 1, .b = 2};
    const std::vector<float> whole = Whole(initializer, shape);
    for (const std::vector<int64_t>& cuts :
         {std::vector<int64_t>{0, 1, 2, 37}, {0, 18, 37}, {0, 0, 36, 37, 37}}) {
      std::vector<float> joined;
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        std::vector<float> part((cuts[i + 1] - cuts[i]) * 15);
        InitializeRows(initializer, "layer/kernel", shape, kJobSeed, cuts[i], cuts[i + 1], part);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, whole) << "kind " << static_cast<int>(kind);
    }
  }
}

TEST(InitializerTest, SeedsAndNamesGiveDifferentValues) {
  const std::vector<float> values = Whole(kGlorotUniform, {20, 20});
  EXPECT_EQ(values, Whole(kGlorotUniform, {20, 20}));
  EXPECT_NE(values, Whole(kGlorotUniform, {20, 20}, "layer_1/kernel"));
  EXPECT_NE(values, Whole(kGlorotUniform, {20, 20}, "layer/kernel", kJobSeed + 1));
  Initializer seeded = kGlorotUniform;
  seeded.seed = 3;
  EXPECT_NE(values, Whole(seeded, {20, 20}));
  // Neighbours are not correlated, nor is the same place under another seed.
  const auto correlation = [](const std::vector<float>& a, const std::vector<float>& b,
                              size_t shift) {
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i + shift < a.size(); ++i) {
      sum += static_cast<double>(a[i]) * b[i + shift];
      squares += static_cast<double>(a[i]) * a[i];
    }
    return sum / squares;
  };
  const std::vector<float> large = Whole(kGlorotUniform, {200, 300});
  for (const size_t shift : {1, 2, 300}) EXPECT_NEAR(correlation(large, large, shift), 0, 0.02);
  EXPECT_NEAR(
      correlation(large, Whole(kGlorotUniform, {200, 300}, "layer/kernel", kJobSeed + 1), 0), 0,
      0.02);
}

TEST(InitializerTest, OrthogonalMatricesAre) {
  for (const Shape& shape : {Shape{40, 12}, Shape{12, 40}, Shape{24, 24}, Shape{3, 3, 4, 6}}) {
    const std::vector<float> values =
        Whole({.kind = Initializer::Kind::kOrthogonal, .a = 2}, shape);
    const int64_t columns = shape.back();
    const int64_t rows = static_cast<int64_t>(values.size()) / columns;
    // The vectors along the longer side have length `gain` and are perpendicular to each other.
    const bool tall = rows >= columns;
    const int64_t count = tall ? columns : rows;
    const int64_t length = tall ? rows : columns;
    const auto at = [&](int64_t vector, int64_t i) {
      return tall ? values[i * columns + vector] : values[vector * columns + i];
    };
    for (int64_t a = 0; a < count; ++a) {
      for (int64_t b = 0; b <= a; ++b) {
        double dot = 0;
        for (int64_t i = 0; i < length; ++i) dot += static_cast<double>(at(a, i)) * at(b, i);
        EXPECT_NEAR(dot, a == b ? 4 : 0, 1e-5);
      }
    }
  }
}

TEST(InitializerTest, Identity) {
  EXPECT_EQ(Whole({.kind = Initializer::Kind::kIdentity, .a = 3}, {2, 3}),
            (std::vector<float>{3, 0, 0, 0, 3, 0}));
  std::vector<float> last_row(3);
  InitializeRows({.kind = Initializer::Kind::kIdentity, .a = 1}, "k", {3, 3}, 0, 2, 3, last_row);
  EXPECT_EQ(last_row, (std::vector<float>{0, 0, 1}));
}

// The values are part of what a job seed promises: a change of the generator must be deliberate.
TEST(InitializerTest, TheGeneratorStaysAsItIs) {
  const std::vector<float> values =
      Whole({.kind = Initializer::Kind::kUniform, .a = 0, .b = 1}, {4}, "dense/kernel", 42);
  const std::vector<float> expected = {0.98222619f, 0.34971535f, 0.25129491f, 0.39630759f};
  for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(values[i], expected[i]);
}

}  // namespace
}  // namespace shoal
