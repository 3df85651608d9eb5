#include "worker/exchange/gradient_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/compression/chunk_payload.h"
#include "tests/worker/exchange/exchange_peer.h"

namespace shoal {
namespace {

using testing::Each;

// Keeps a quarter of each piece.
constexpr char kTopK[] = R"({"fraction":0.25,"name":"top_k"})";

class GradientEncoderTest : public testing::Test {
 protected:
  GradientEncoderTest() : gradients_(model_.layout.size), encoder_(With(kTopK)) {
    for (const Chunk& chunk : model_.chunks(0)) {
      if (encoder_.Encodes(chunk)) ++encoded_;
    }
    Draw();
  }

  GradientEncoder With(const std::string& codec) const {
    return GradientEncoder({.shard_map = &model_.shard_map,
                            .layout = &model_.layout,
                            .gradients = gradients_,
                            .codec = *MakeCodec(codec, Direction::kPush)});
  }
  // The next step's gradients: in thirds, so that sums are rounded, and many are of one size.
  void Draw() {
    for (float& g : gradients_) g = static_cast<float>(int(random_() % 21) - 10) / 3;
  }
  static std::string Bytes(const Slice& slice) { return {slice.data, slice.size}; }
  size_t OffsetOf(const ChunkPiece& piece) const {
    return model_.layout.variables[piece.variable].offset + piece.variable_offset;
  }
  // A payload of the chunk as the ps reads it, at its places in a buffer of the model.
  std::vector<float> Decoded(int ps, int chunk, const Slice& payload,
                             const std::string& codec = kTopK) const {
    std::vector<float> out(model_.layout.size);
    const absl::Status status =
        DecodeChunk(**MakeCodec(codec, Direction::kPush), model_.chunks(ps)[chunk],
                    Message{.payload = {payload}}, [&](const ChunkPiece& piece) {
                      return std::span(out).subspan(OffsetOf(piece), piece.size);
                    });
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  const SmallModel model_;
  std::mt19937 random_{4};
  std::vector<float> gradients_;
  GradientEncoder encoder_;
  int encoded_ = 0;
};

// The reference: error feedback in float32, with sorting.
TEST_F(GradientEncoderTest, FollowsErrorFeedbackExactly) {
  std::vector<float> left(model_.layout.size, 0.0f);
  for (int step = 0; step < 40; ++step) {
    Draw();
    for (int ps = 0; ps < 2; ++ps) {
      for (size_t k = 0; k < model_.chunks(ps).size(); ++k) {
        const Chunk& chunk = model_.chunks(ps)[k];
        if (!encoder_.Encodes(chunk)) continue;
        const std::vector<float> sent = Decoded(ps, k, encoder_.Payload(ps, k));
        encoder_.Acknowledge(ps, k, false);
        for (const ChunkPiece& piece : chunk.pieces) {
          std::vector<float> corrected(piece.size);
          std::vector<size_t> order(piece.size);
          std::iota(order.begin(), order.end(), size_t{0});
          for (const size_t i : order)
            corrected[i] = gradients_[OffsetOf(piece) + i] + left[OffsetOf(piece) + i];
          std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            return std::abs(corrected[a]) > std::abs(corrected[b]);
          });
          const auto kept = static_cast<size_t>(std::ceil(0.25 * static_cast<double>(piece.size)));
          for (size_t rank = 0; rank < order.size(); ++rank) {
            const size_t i = order[rank], at = OffsetOf(piece) + i;
            ASSERT_EQ(sent[at], rank < kept ? corrected[i] : 0.0f) << "step " << step;
            left[at] = rank < kept ? 0.0f : corrected[i];
          }
        }
      }
    }
  }
}

TEST_F(GradientEncoderTest, ARetryHasTheSameBytes) {
  for (const char* codec : {"bf16", "int8", "e3m0", kTopK}) {
    GradientEncoder encoder = With(codec);
    encoder.Payload(0, 0);
    encoder.Acknowledge(0, 0, false);  // some residual is there
    Draw();
    const std::string first = Bytes(encoder.Payload(0, 0));
    const Slice kept = encoder.Payload(0, 0);
    EXPECT_EQ(Bytes(kept), first) << codec;
    encoder.Acknowledge(0, 0, false);
    EXPECT_EQ(Bytes(kept), first) << "a transport may still be reading it";
    Draw();
    EXPECT_NE(Bytes(encoder.Payload(0, 0)), first) << "another step";
  }
}

TEST_F(GradientEncoderTest, TheResidualIsOfThePushThatWasApplied) {
  const Slice first = encoder_.Payload(0, 0);
  const std::vector<float> before = gradients_;
  encoder_.Acknowledge(0, 0, false);
  const std::vector<float> sent = Decoded(0, 0, first);
  std::ranges::fill(gradients_, 0.0f);
  // Nothing but what the first left out.
  const std::vector<float> rest = Decoded(0, 0, encoder_.Payload(0, 0));
  EXPECT_NE(rest, std::vector<float>(rest.size()));
  for (size_t i = 0; i < rest.size(); ++i)
    EXPECT_TRUE(rest[i] == 0 || (sent[i] == 0 && rest[i] == before[i])) << i;
}

// Another worker's gradient of this step was applied: of ours nothing may be added later.
TEST_F(GradientEncoderTest, APushThatCameTooLateLeavesTheResidualAsItWas) {
  encoder_.Payload(0, 0);
  encoder_.Acknowledge(0, 0, false);
  GradientEncoder same = With(kTopK);
  same.Payload(0, 0);
  same.Acknowledge(0, 0, false);

  Draw();
  encoder_.Payload(0, 0);
  encoder_.Acknowledge(0, 0, true);
  Draw();
  EXPECT_EQ(Bytes(encoder_.Payload(0, 0)), Bytes(same.Payload(0, 0)));
}

// It was sent twice, and one of the two, or another worker's, was applied: nobody knows.
TEST_F(GradientEncoderTest, WhereItCannotBeKnownWhatWasAppliedTheResidualIsForgotten) {
  encoder_.Payload(0, 0);
  encoder_.Acknowledge(0, 0, false);
  Draw();
  encoder_.Payload(0, 0);
  encoder_.Payload(0, 0);
  encoder_.Acknowledge(0, 0, true);
  std::ranges::fill(gradients_, 0.0f);
  EXPECT_THAT(Decoded(0, 0, encoder_.Payload(0, 0)), Each(0.0f));
}

TEST_F(GradientEncoderTest, AnotherTimelineBeginsWithoutAResidual) {
  encoder_.Payload(0, 0);
  encoder_.Acknowledge(0, 0, false);
  Draw();
  encoder_.Payload(0, 0);
  encoder_.Forget();
  Draw();
  GradientEncoder fresh = With(kTopK);
  EXPECT_EQ(Bytes(encoder_.Payload(0, 0)), Bytes(fresh.Payload(0, 0)));
}

TEST_F(GradientEncoderTest, WithoutACodecNothingIsEncoded) {
  EXPECT_GT(encoded_, 0);
  GradientEncoder none = With("");
  for (const Chunk& chunk : model_.chunks(0)) EXPECT_FALSE(none.Encodes(chunk));
  none.Acknowledge(0, 0, false);
  none.Forget();
}

}  // namespace
}  // namespace shoal
