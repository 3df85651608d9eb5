#include "common/compression/chunk_payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace shoal {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// A kernel and its bias, of other magnitudes.
const Chunk kChunk{.size = 110,
                   .pieces = {{.variable = 0, .chunk_offset = 0, .size = 100},
                              {.variable = 1, .chunk_offset = 100, .size = 10}}};

std::shared_ptr<const Codec> Int8() { return *MakeCodec("int8", Direction::kPush); }

class ChunkPayloadTest : public testing::Test {
 protected:
  ChunkPayloadTest() : values_(110, 1000.0f), out_(110) {
    std::fill(values_.begin() + 100, values_.end(), 0.5f);
  }
  Slice Encoded() const {
    return EncodeChunk(*Int8(), kChunk, [this](const ChunkPiece& piece) {
      return std::span(values_).subspan(piece.chunk_offset, piece.size);
    });
  }
  absl::Status Decode(std::vector<Slice> payload) {
    return DecodeChunk(*Int8(), kChunk, Message{.payload = std::move(payload)},
                       [this](const ChunkPiece& piece) {
                         return std::span(out_).subspan(piece.chunk_offset, piece.size);
                       });
  }

  std::vector<float> values_;
  std::vector<float> out_;
};

TEST_F(ChunkPayloadTest, APieceHasItsOwnScale) {
  const Slice slice = Encoded();
  EXPECT_EQ(slice.size, PayloadBytes(Int8().get(), kChunk));
  EXPECT_EQ(slice.size, 110 + 2 * 4u);
  ASSERT_TRUE(Decode({slice}).ok());
  for (int i = 0; i < 110; ++i) EXPECT_NEAR(out_[i], values_[i], values_[i] / 254) << i;
}

TEST_F(ChunkPayloadTest, SlicesMayCutItAnywhere) {
  const Slice slice = Encoded();
  for (size_t cut = 0; cut <= slice.size; ++cut) {
    std::fill(out_.begin(), out_.end(), 0.0f);
    ASSERT_TRUE(
        Decode({{slice.data, cut, nullptr}, {slice.data + cut, slice.size - cut, nullptr}}).ok());
    EXPECT_NEAR(out_[109], 0.5f, 0.5f / 254);
  }
}

TEST_F(ChunkPayloadTest, AWrongSizeIsRejectedAndChangesNothing) {
  const Slice slice = Encoded();
  EXPECT_THAT(std::string(Decode({{slice.data, 117, nullptr}}).message()),
              AllOf(HasSubstr("117 bytes as int8"), HasSubstr(" 118")));
  EXPECT_FALSE(Decode({}).ok());
  EXPECT_FALSE(Decode({slice, slice}).ok());
  EXPECT_THAT(out_, Each(0.0f));
}

TEST_F(ChunkPayloadTest, OnlyWhatTheOptimizerUpdatesIsCompressed) {
  const auto codec = Int8();
  EXPECT_EQ(CodecOf(codec.get(), {.rule = UpdateRule::kOptimizer}), codec.get());
  EXPECT_EQ(CodecOf(codec.get(), {.rule = UpdateRule::kMovingAverage}), nullptr);
  EXPECT_EQ(CodecOf(codec.get(), {.rule = UpdateRule::kFrozen}), nullptr);
  EXPECT_EQ(PayloadBytes(nullptr, kChunk), 440u);
}

}  // namespace
}  // namespace shoal
