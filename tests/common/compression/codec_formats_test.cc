// The bytes and values of each codec, by hand or by a reference that is as plain as may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/compression/codec.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Values = std::vector<float>;

std::string Encode(const std::string& config, const Values& values) {
  const auto codec = *MakeCodec(config, Direction::kPush);
  std::string bytes(codec->EncodedBytes(values.size()), '?');
  codec->Encode(values, bytes.data());
  return bytes;
}

absl::Status Decode(const std::string& config, const std::string& bytes, Values* out) {
  return (*MakeCodec(config, Direction::kPush))->Decode(bytes, *out);
}

Values RoundTrip(const std::string& config, const Values& values) {
  Values back(values.size());
  EXPECT_TRUE(Decode(config, Encode(config, values), &back).ok());
  return back;
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

template <typename T>
std::string BytesOf(std::initializer_list<T> values) {
  std::string text;
  for (const T& value : values) text.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return text;
}

TEST(Bf16Test, RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(Encode("bf16", {1.0f, -2.0f}), Bytes({0x80, 0x3f, 0x00, 0xc0}));
  const float ulp = 0x1p-7f;  // of numbers from 1 to 2
  EXPECT_THAT(RoundTrip("bf16", {1 + 0.49f * ulp, 1 + 0.5f * ulp, 1 + 1.5f * ulp, 1 + 0.51f * ulp}),
              ElementsAre(1.0f, 1.0f, 1 + 2 * ulp, 1 + ulp));
}

TEST(Bf16Test, FiniteStaysFiniteAndTheRestItself) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Values back = RoundTrip("bf16", {std::numeric_limits<float>::max(), infinity, -infinity,
                                         std::nanf(""), std::numeric_limits<float>::denorm_min()});
  EXPECT_EQ(back[0], 0x1.fep127f);
  EXPECT_EQ(back[1], infinity);
  EXPECT_EQ(back[2], -infinity);
  EXPECT_TRUE(std::isnan(back[3]));
  EXPECT_EQ(back[4], 0);
}

TEST(Int8Test, AScaleThenACodeForEachValue) {
  EXPECT_EQ(Encode("int8", {254, -254, 2, 1.1f, 0}),
            BytesOf<float>({2.0f}) + Bytes({127, -127, 1, 1, 0}));
}

TEST(Int8Test, EachBlockHasItsOwnScale) {
  Values values(257, 127.0f);
  values[256] = 0.001f;
  const Values back = RoundTrip("int8", values);
  EXPECT_EQ(back[255], 127.0f);
  EXPECT_NEAR(back[256], 0.001f, 0.001f / 254);
}

// The tolerance of other implementations' tests.
TEST(Int8Test, MeanSquaredErrorOfTheNormalDistribution) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  Values values(1 << 16);
  for (float& x : values) x = static_cast<float>(normal(random));
  const Values back = RoundTrip("int8", values);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += std::pow(double{back[i]} - values[i], 2);
  EXPECT_LT(sum / static_cast<double>(values.size()), 8e-4);
}

TEST(Int8Test, RejectsWhatNoEncoderWrites) {
  Values out(2);
  const absl::Status status = Decode("int8", BytesOf<float>({1.0f}) + Bytes({1, -128}), &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("int8: "));
  for (const float scale : {-1.0f, 1e-40f, 1e37f, std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(Decode("int8", BytesOf<float>({scale}) + Bytes({1, 2}), &out).ok()) << scale;
  }
}

// Against a search among all that can be written.
TEST(E3m0Test, ComesBackAsTheNearestOfAll) {
  std::mt19937_64 random(9);
  std::uniform_real_distribution<float> exponent(-9, 0);
  Values values = {8.0f};  // the largest, which the others are measured with
  for (int i = 1; i < 256; ++i) values.push_back((i % 2 ? 8 : -8) * std::exp2(exponent(random)));
  const Values back = RoundTrip("e3m0", values);
  for (size_t i = 0; i < values.size(); ++i) {
    double nearest = values[i];  // its distance from 0
    nearest = std::abs(nearest);
    for (int e = -6; e <= 0; ++e) {
      nearest = std::min(nearest, std::abs(std::abs(double{values[i]}) - std::ldexp(8.0, e)));
    }
    EXPECT_NEAR(std::abs(double{back[i]} - values[i]), nearest, 1e-6) << values[i];
  }
}

TEST(E3m0Test, TwoCodesAByte) {
  EXPECT_EQ(Encode("e3m0", {4, -4, 2, 0, -0.0625f}),
            BytesOf<float>({4.0f}) + Bytes({0x07, 0x9f, 0x06}));
}

TEST(E3m0Test, RejectsAHalfByteThatIsNobodys) {
  Values out(1);
  EXPECT_FALSE(Decode("e3m0", BytesOf<float>({1.0f}) + Bytes({0x17}), &out).ok());
  EXPECT_TRUE(Decode("e3m0", BytesOf<float>({1.0f}) + Bytes({0x07}), &out).ok());
  EXPECT_THAT(out, ElementsAre(1.0f));
}

constexpr char kTenth[] = R"({"fraction":0.1,"name":"top_k"})";

TEST(TopKTest, IndicesThenValues) {
  Values values(20, 0.5f);
  values[3] = -9;
  values[17] = 2;
  EXPECT_EQ(Encode(kTenth, values), BytesOf<uint32_t>({3, 17}) + BytesOf<float>({-9, 2}));
}

TEST(TopKTest, TheFirstOfEqualValuesIsKept) {
  EXPECT_EQ(Encode(kTenth, Values(11, -0.5f)),
            BytesOf<uint32_t>({0, 1}) + BytesOf<float>({-0.5f, -0.5f}));
}

// Against sorting all of them.
TEST(TopKTest, KeepsTheLargest) {
  std::mt19937_64 random(21);
  std::normal_distribution<float> normal;
  for (const size_t size : {1, 9, 10, 11, 1000, 4097, 65536}) {
    Values values(size);
    // Rounded, so that many are equal.
    for (float& x : values) x = std::round(normal(random) * 64) / 64;
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::abs(values[a]) > std::abs(values[b]); });
    Values expected(size, 0);
    const auto kept = static_cast<size_t>(std::ceil(0.1 * static_cast<double>(size)));
    for (size_t i = 0; i < kept; ++i) expected[order[i]] = values[order[i]];
    EXPECT_EQ(RoundTrip(kTenth, values), expected);
  }
}

TEST(TopKTest, RejectsIndicesOutOfOrderOrRange) {
  Values out(20);
  const std::string values = BytesOf<float>({1, 2});
  EXPECT_TRUE(Decode(kTenth, BytesOf<uint32_t>({0, 19}) + values, &out).ok());
  EXPECT_FALSE(Decode(kTenth, BytesOf<uint32_t>({0, 20}) + values, &out).ok());
  EXPECT_FALSE(Decode(kTenth, BytesOf<uint32_t>({5, 5}) + values, &out).ok());
  EXPECT_FALSE(Decode(kTenth, BytesOf<uint32_t>({6, 5}) + values, &out).ok());
  EXPECT_THAT(
      std::string(Decode(kTenth, BytesOf<uint32_t>({0, 4294967295}) + values, &out).message()),
      AllOf(HasSubstr("index 4294967295"), HasSubstr(" 20")));
}

}  // namespace
}  // namespace shoal
