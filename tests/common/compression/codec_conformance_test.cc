// What codec.h promises of every codec.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compression/codec.h"
#include "common/compression/codec_table.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr size_t kBlock = 256;
constexpr double kTiny = std::numeric_limits<float>::min();

// How far from `value` what comes back may be, where `largest` is the largest magnitude beside it.
double Bf16Bound(double value, double) { return std::ldexp(std::abs(value), -8) + 5e-41; }
double Int8Bound(double, double largest) { return largest / 254 * 1.0001 + 127 * kTiny; }
double E3m0Bound(double value, double largest) {
  return std::max(std::abs(value) / 3 * 1.0001, largest / 128) + kTiny;
}
double TopKBound(double value, double) { return std::abs(value); }

// A codec joins by a line here.
struct Case {
  const char* config;
  double min_ratio;  // of a long array, to float32
  double (*bound)(double value, double largest);
};
constexpr Case kCases[] = {
    {"bf16", 2, Bf16Bound},
    {"int8", 3.9, Int8Bound},
    {"e3m0", 7.5, E3m0Bound},
    {R"({"fraction":0.01,"name":"top_k"})", 49, TopKBound},
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.config; }

TEST(CodecTableTest, EveryCodecIsPutToTheTest) {
  std::vector<std::string> tested;
  for (const Case& each : kCases) {
    const std::string config = each.config;
    const auto known = CodecNames(Direction::kPush);
    for (const std::string& name : known) {
      if (config == name || config.find("\"" + name + "\"") != std::string::npos)
        tested.push_back(name);
    }
  }
  EXPECT_EQ(tested, CodecNames(Direction::kPush));
}

const size_t kSizes[] = {0, 1, 2, 3, 7, 16, 17, 63, 127, 128, 129, 255, 256, 257, 511, 513, 4099};

using Values = std::vector<float>;

class CodecTest : public testing::TestWithParam<Case> {
 protected:
  CodecTest() : codec_(*MakeCodec(GetParam().config, Direction::kPush)) {}

  std::string Encode(std::span<const float> values) const {
    std::string bytes(codec_->EncodedBytes(values.size()), '?');
    codec_->Encode(values, bytes.data());
    return bytes;
  }
  Values Decode(const std::string& bytes, size_t count) const {
    Values values(count, -77);
    const absl::Status decoded = codec_->Decode(bytes, values);
    EXPECT_TRUE(decoded.ok()) << decoded;
    return values;
  }

  // Normally distributed, over all that gradients come in: blocks of one magnitude, of many, and
  // what is next to the limits of a float.
  static std::vector<Values> Samples() {
    std::mt19937_64 random(11);
    std::normal_distribution<float> normal;
    std::vector<Values> samples;
    for (const size_t size : kSizes) {
      for (const float factor : {1.0f, 1e-6f, 1e30f, 1e-38f, 1e-43f, 0.0f}) {
        Values values(size);
        for (float& x : values) x = normal(random) * factor;
        samples.push_back(values);
      }
      Values mixed(size);
      for (float& x : mixed) x = normal(random) * std::pow(10.0f, 4 * normal(random));
      samples.push_back(mixed);
      Values limits(size);
      const float at[] = {std::numeric_limits<float>::max(),        -1e-20f, -0.0f,
                          std::numeric_limits<float>::denorm_min(), 1.0f,    -3.3e38f};
      for (size_t i = 0; i < size; ++i) limits[i] = at[random() % std::size(at)];
      samples.push_back(limits);
      samples.push_back(Values(size, -0.125f));
    }
    return samples;
  }

  const std::shared_ptr<const Codec> codec_;
};

TEST_P(CodecTest, ErrorsAreWithinTheBound) {
  for (const Values& values : Samples()) {
    const Values back = Decode(Encode(values), values.size());
    for (size_t begin = 0; begin < values.size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, values.size());
      double largest = 0;
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(double{values[i]}));
      for (size_t i = begin; i < end; ++i) {
        ASSERT_LE(std::abs(double{back[i]} - double{values[i]}),
                  GetParam().bound(values[i], largest))
            << "value " << i << " of " << values.size() << ", " << values[i] << ", came back as "
            << back[i] << "; the largest beside it is " << largest;
      }
    }
  }
}

TEST_P(CodecTest, WritesExactlyAsManyBytesAsItSays) {
  for (const Values& values : Samples()) {
    const size_t size = codec_->EncodedBytes(values.size());
    for (const char mark : {'a', 'b'}) {
      std::string bytes(size + 16, mark);
      codec_->Encode(values, bytes.data() + 8);
      EXPECT_EQ(bytes.substr(0, 8), std::string(8, mark));
      EXPECT_EQ(bytes.substr(8 + size), std::string(8, mark));
      EXPECT_EQ(bytes.substr(8, size), Encode(values)) << "some bytes are left as they were";
    }
  }
}

TEST_P(CodecTest, EqualValuesGiveEqualBytesAtAnyAddress) {
  for (const Values& values : Samples()) {
    const std::string bytes = Encode(values);
    for (const size_t shift : {1, 3, 5}) {
      Values moved(values.size() + shift);
      std::copy(values.begin(), values.end(), moved.begin() + shift);
      std::string out(bytes.size() + shift, '?');
      codec_->Encode(std::span(moved).subspan(shift), out.data() + shift);
      EXPECT_EQ(out.substr(shift), bytes);
      Values back(values.size());
      ASSERT_TRUE(codec_->Decode(std::span(out).subspan(shift), back).ok());
      const Values expected = Decode(bytes, values.size());
      EXPECT_EQ(std::memcmp(back.data(), expected.data(), back.size() * sizeof(float)), 0);
    }
  }
}

TEST_P(CodecTest, DecodedValuesAreEncodedToTheSameBytes) {
  for (const Values& values : Samples()) {
    const std::string bytes = Encode(values);
    EXPECT_EQ(Encode(Decode(bytes, values.size())), bytes) << values.size() << " values";
  }
}

TEST_P(CodecTest, ValuesNotFiniteAreNotHidden) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float broken : {std::nanf(""), -std::nanf("5"), infinity, -infinity}) {
    for (const size_t size : {1, 2, 100, 256, 257, 700}) {
      for (const size_t place : {size_t{0}, size / 2, size - 1}) {
        Values values(size, 0.5f);
        values[place] = broken;
        const std::string bytes = Encode(values);
        const Values back = Decode(bytes, size);
        EXPECT_FALSE(std::isfinite(back[place])) << broken << " at " << place << " of " << size;
        EXPECT_EQ(Encode(back), bytes);
        // At most its own block is lost with it.
        for (size_t i = 0; i < size; ++i) {
          EXPECT_TRUE(std::isfinite(back[i]) || i / kBlock == place / kBlock) << i;
        }
      }
    }
  }
}

TEST_P(CodecTest, ALongArrayTakesAsFewBytesAsPromised) {
  const double count = 1 << 18;
  const double ratio = count * sizeof(float) / static_cast<double>(codec_->EncodedBytes(1 << 18));
  EXPECT_GE(ratio, GetParam().min_ratio);
}

TEST_P(CodecTest, AnotherNumberOfBytesIsRejected) {
  for (const size_t count : kSizes) {
    const size_t size = codec_->EncodedBytes(count);
    for (const size_t wrong : {size - 1, size + 1, size + 4, 2 * size + 3, size_t{0}}) {
      if (wrong == size || wrong > 10 * size + 10) continue;
      Values out(count);
      const absl::Status status = codec_->Decode(std::string(wrong, '\0'), out);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << count << ", " << wrong;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(wrong, " bytes")));
    }
  }
}

// Sanitizers see whether anything outside is touched; tests/fuzz goes on where this ends.
TEST_P(CodecTest, AnyBytesAreReadOrRejected) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    const size_t count = kSizes[random() % std::size(kSizes)];
    std::string bytes(codec_->EncodedBytes(count), '\0');
    if (round % 2 == 0) {
      for (char& byte : bytes) byte = static_cast<char>(random());
    } else {
      codec_->Encode(Values(count, 0.25f), bytes.data());
      for (int i = 0; i < 3 && !bytes.empty(); ++i)
        bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Values out(count);
    const absl::Status status = codec_->Decode(bytes, out);
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(status.message().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecTest, testing::ValuesIn(kCases));

}  // namespace
}  // namespace shoal
