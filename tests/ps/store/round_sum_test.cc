#include "ps/store/round_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <random>

#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr size_t kSize = 37;
constexpr Round kRound = {.first = 8, .count = 4, .number = 2};

// Of magnitudes so far apart that another order of adding them gives another sum.
std::vector<float> Gradient(uint64_t step) {
  std::mt19937_64 random(step);
  std::vector<float> values(kSize);
  for (float& value : values) {
    const double mantissa = static_cast<double>(random() % 2000) - 1000;
    value = static_cast<float>(std::ldexp(mantissa, static_cast<int>(random() % 30)));
  }
  return values;
}

// The steps' gradients in this order of arrival; a slice ends after each `slice_bytes`.
std::vector<float> Mean(RoundSum* sum, const std::vector<uint64_t>& steps, size_t slice_bytes = 0) {
  for (const uint64_t step : steps) {
    EXPECT_TRUE(sum->Check(kRound, step, kRound.first).ok());
    const Message* const mean =
        sum->Add(kRound, step, GradientMessage(Gradient(step), slice_bytes));
    EXPECT_EQ(mean != nullptr, step == steps.back()) << "all are in";
    EXPECT_EQ(sum->in_progress(), step != steps.back());
    if (mean != nullptr) return ToFloats(mean->payload);
  }
  return {};
}

std::vector<float> ExpectedMean() {
  std::vector<float> mean = Gradient(kRound.first);
  for (uint64_t step = kRound.first + 1; step < kRound.end(); ++step) {
    const std::vector<float> gradient = Gradient(step);
    for (size_t i = 0; i < kSize; ++i) mean[i] += gradient[i];
  }
  for (float& value : mean) value /= static_cast<float>(kRound.count);
  return mean;
}

TEST(RoundSumTest, AnyOrderOfArrivalGivesTheSameMean) {
  std::vector<uint64_t> steps(kRound.count);
  std::iota(steps.begin(), steps.end(), kRound.first);
  RoundSum sum(kSize, kRound.count);
  do {
    EXPECT_EQ(Mean(&sum, steps), ExpectedMean()) << testing::PrintToString(steps);
    EXPECT_EQ(sum.early_count(), 0u);
  } while (std::next_permutation(steps.begin(), steps.end()));
}

TEST(RoundSumTest, SlicesThatSplitFloatsGiveTheSameMean) {
  for (const size_t slice_bytes : {1, 3, 7, 130}) {
    RoundSum sum(kSize, kRound.count);
    EXPECT_EQ(Mean(&sum, {9, 11, 8, 10}, slice_bytes), ExpectedMean()) << slice_bytes;
  }
}

TEST(RoundSumTest, AnEarlyGradientIsKeptUntilItsTurn) {
  RoundSum sum(kSize, kRound.count);
  const auto add = [&sum](uint64_t step) {
    sum.Add(kRound, step, GradientMessage(Gradient(step)));
    return sum.early_count();
  };
  EXPECT_EQ(add(11), 1u);
  EXPECT_EQ(add(9), 2u);
  EXPECT_EQ(add(8), 1u) << "8 and 9 are added";
  EXPECT_TRUE(sum.in_progress());
  EXPECT_EQ(add(10), 0u);
  EXPECT_FALSE(sum.in_progress());
}

// The sender has its answer, and computes its next gradient into the same buffer.
TEST(RoundSumTest, AnEarlyGradientIsCopied) {
  std::vector<std::vector<float>> buffers;
  for (uint64_t step = kRound.first; step < kRound.end(); ++step) buffers.push_back(Gradient(step));
  RoundSum sum(kSize, kRound.count);
  for (const uint64_t step : {10, 8, 11, 9}) {
    std::vector<float>& buffer = buffers[step - kRound.first];
    const Message* const mean = sum.Add(
        kRound, step,
        {.payload = {{reinterpret_cast<const char*>(buffer.data()), kSize * sizeof(float)}}});
    std::ranges::fill(buffer, std::numeric_limits<float>::quiet_NaN());
    if (mean != nullptr) {
      EXPECT_EQ(ToFloats(mean->payload), ExpectedMean());
    }
  }
  EXPECT_FALSE(sum.in_progress());
}

// So one worker with rounds of one step computes what it computes without rounds.
TEST(RoundSumTest, TheMeanOfOneIsThatGradient) {
  const Message gradient = GradientMessage({-0.0f, 1e-45f, 3});
  RoundSum sum(3, 1);
  EXPECT_EQ(sum.Add({.first = 5, .count = 1, .number = 5}, 5, gradient), &gradient);
  EXPECT_FALSE(sum.in_progress());
}

TEST(RoundSumTest, TheFirstGradientIsNotAdded) {
  RoundSum sum(1, 2);
  const Round round = {.first = 0, .count = 2, .number = 0};
  sum.Add(round, 0, GradientMessage({-0.0f}));
  const std::vector<float> mean = ToFloats(sum.Add(round, 1, GradientMessage({-0.0f}))->payload);
  EXPECT_EQ(std::bit_cast<uint32_t>(mean[0]), std::bit_cast<uint32_t>(-0.0f));
}

TEST(RoundSumTest, WrongRoundsAreNamed) {
  RoundSum sum(kSize, 4);
  const auto message = [&sum](const Round& round, uint64_t step, uint64_t version = 8) {
    const absl::Status status = sum.Check(round, step, version);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message({8, 5, 2}, 8), HasSubstr("5 steps from 8 on: a round of this job has 4"));
  EXPECT_THAT(message({8, 0, 2}, 8), HasSubstr("the step is not one of them"));
  EXPECT_THAT(message({8, 4, 2}, 12), HasSubstr("the step is not one of them"));
  EXPECT_THAT(message({8, 4, 2}, 7), HasSubstr("the step is not one of them"));
  EXPECT_THAT(message({8, 4, 9}, 8), HasSubstr("the rounds before it have no steps"));
  EXPECT_THAT(message({12, 4, 3}, 12), HasSubstr("round 3 of 4 steps from 12 on: the chunk is at "
                                                 "version 8"));
  EXPECT_THAT(message({4, 4, 1}, 5), HasSubstr("the chunk is at version 8"));
  EXPECT_THAT(message({9, 4, 2}, 9), HasSubstr("the rounds before it have fewer steps"));
  EXPECT_THAT(message({9, 4, 3}, 9), HasSubstr("the chunk is at version 8"));
  EXPECT_THAT(message({UINT64_MAX - 1, 4, 1}, UINT64_MAX), HasSubstr("fewer steps"));
  sum.Add(kRound, 9, GradientMessage(Gradient(9)));
  EXPECT_THAT(message({8, 3, 2}, 8), HasSubstr("the chunk is in round 2 of 4 steps from 8 on"));
  EXPECT_THAT(message({8, 4, 3}, 8), HasSubstr("the chunk is in round 2"));
  EXPECT_TRUE(sum.Check(kRound, 8, 8).ok());
}

}  // namespace
}  // namespace shoal
