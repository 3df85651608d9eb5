// An exchange whose job compresses what travels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/compression/chunk_payload.h"
#include "tests/worker/exchange/parameter_exchange_fixture.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ExchangeCompressionTest : public ParameterExchangeTest {
 protected:
  ExchangeCompressionTest() {
    Make({.push_codec = *MakeCodec("int8", Direction::kPush),
          .pull_codec = *MakeCodec("bf16", Direction::kPull)});
  }

  // A chunk full of one number, as the ps sends it.
  std::string Values(int index, int chunk, float value) const {
    const Chunk& of = model_.chunks(index)[chunk];
    if (!of.has_slots()) return model_.Filled(index, chunk, value);
    const std::vector<float> values(of.size, value);
    const Slice slice =
        EncodeChunk(**MakeCodec("bf16", Direction::kPull), of, [&](const ChunkPiece& piece) {
          return std::span(values).subspan(piece.chunk_offset, piece.size);
        });
    return {slice.data, slice.size};
  }
  void Pull() {
    exchange_->PullAll([this] { events_.push_back("pulled"); });
    for (int i = 0; i < 2; ++i) {
      ps(i).Take<proto::ExchangeRequest>();
      for (int k = 0; k < ChunkCount(i); ++k)
        ExchangePeer::SendValues(ps(i), kTimeline, k, 7, 0, Values(i, k, 1.5));
    }
    loop_.RunUntilIdle();
  }
};

TEST_F(ExchangeCompressionTest, TheHelloNamesTheCodecs) {
  const auto requests = ps(0).Take<proto::ExchangeRequest>();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].hello().push_codec(), "int8");
  EXPECT_EQ(requests[0].hello().pull_codec(), "bf16");
}

TEST_F(ExchangeCompressionTest, PullsDecodeWhatIsTrained) {
  Connect();
  Pull();
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) ExpectChunk(i, k, 1.5);
  }
}

TEST_F(ExchangeCompressionTest, AfterABrokenStreamTheSameBytesAreSent) {
  Connect();
  Pull();
  TakeEvents();
  BeginStep();
  const auto [index, chunk] = PushedChunks().front();
  exchange_->PushChunk(index, chunk);
  const auto first = ps(index).TakeWithPayload<proto::ExchangeRequest>();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].second.size(), PayloadBytes((*MakeCodec("int8", Direction::kPush)).get(),
                                                 model_.chunks(index)[chunk]));

  Break(index);
  ps(index).Take<proto::ExchangeRequest>();
  ExchangePeer::SendHello(ps(index), kTimeline);
  loop_.RunUntilIdle();
  const auto again = ps(index).TakeWithPayload<proto::ExchangeRequest>();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].first.push().step(), kStep);
  EXPECT_EQ(again[0].second, first[0].second);

  ExchangePeer::SendApplied(ps(index), kTimeline, kStep, chunk, 8, Values(index, chunk, 0.25));
  loop_.RunUntilIdle();
  ExpectChunk(index, chunk, 0.25);
}

// What is left of the steps before it is added to the next that has a gradient.
TEST_F(ExchangeCompressionTest, AStepThatIsSkippedTakesNoResidual) {
  const auto [index, chunk] = PushedChunks().front();
  std::vector<std::string> second;
  for (const bool nothing_between : {false, true}) {
    Make({.push_codec = *MakeCodec("int8", Direction::kPush)});
    Connect();
    PullAll(0.5, 7);
    std::vector<uint64_t> steps = {kStep, kStep + 2};
    if (nothing_between) steps.insert(steps.begin() + 1, kStep + 1);
    std::string sent;
    for (const uint64_t step : steps) {
      exchange_->BeginStep(step, [] {});
      if (step == kStep + 1) exchange_->SkipGradient();
      exchange_->PushChunk(index, chunk);
      const auto requests = ps(index).TakeWithPayload<proto::ExchangeRequest>();
      ASSERT_EQ(requests.size(), 1u);
      EXPECT_EQ(requests[0].second.empty(), step == kStep + 1);
      sent = requests[0].second;
      ExchangePeer::SendApplied(ps(index), kTimeline, step, chunk, 8,
                                model_.Filled(index, chunk, 0.25));
      loop_.RunUntilIdle();
    }
    second.push_back(sent);
  }
  EXPECT_EQ(second[1], second[0]);
}

TEST_F(ExchangeCompressionTest, AnInvalidEncodingEndsTheWorker) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  ExchangePeer::SendValues(ps(0), kTimeline, 0, 1, 0, model_.Filled(0, 0, 1));
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("failed: ps 0 at ps-0:1, chunk 0: "),
                                              HasSubstr("bytes as bf16"))));
}

// What is evaluated is what is saved.
TEST_F(ExchangeCompressionTest, ACutIsFloat32) {
  Connect();
  exchange_->PullCut(40, cut_, [this](const absl::Status& status) {
    events_.push_back(absl::StrCat("cut: ", std::string(status.message())));
  });
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k)
      ExchangePeer::SendValues(ps(i), kTimeline, k, 1, 40, model_.Filled(i, k, 1 + 0x1p-20f));
  }
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("cut: "));
  EXPECT_EQ(model_.Gather(0, 0, cut_), model_.Filled(0, 0, 1 + 0x1p-20f));
}

}  // namespace
}  // namespace shoal
