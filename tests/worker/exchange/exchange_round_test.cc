// What an exchange asks and pushes in synchronous rounds (docs/protocol.md, section 13).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/exchange/parameter_exchange_fixture.h"

namespace shoal {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Round kRound = {.first = 10, .count = 4, .number = 3};  // with kStep

class ExchangeRoundTest : public ParameterExchangeTest {
 protected:
  void PullVersion(uint64_t version) {
    exchange_->PullVersion(version, [this](absl::Status status) {
      events_.push_back(status.ok() ? "pulled" : absl::StatusCodeToString(status.code()));
    });
  }
  void SendAll(int index, float value, uint64_t version) {
    for (int k = 0; k < ChunkCount(index); ++k) SendValues(index, k, value, version);
  }
  void RejectVersion(int index, uint64_t version) {
    ExchangePeer::RejectVersion(ps(index), kTimeline, version);
    loop_.RunUntilIdle();
  }
};

TEST_F(ExchangeRoundTest, APullNamesTheVersionAlsoOverAnotherStream) {
  Connect();
  PullVersion(10);
  for (int i = 0; i < 2; ++i) {
    const auto requests = ps(i).Take<proto::ExchangeRequest>();
    ASSERT_THAT(requests, SizeIs(1));
    ASSERT_TRUE(requests[0].pull().has_version());
    EXPECT_EQ(requests[0].pull().version(), 10u);
  }
  Break(0);
  ps(0).Take<proto::ExchangeRequest>();
  ExchangePeer::SendHello(ps(0), kTimeline);
  loop_.RunUntilIdle();
  EXPECT_EQ(ps(0).Take<proto::ExchangeRequest>().at(0).pull().version(), 10u);
  SendAll(0, 5, 10);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  SendAll(1, 5, 10);
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) ExpectChunk(i, k, 5);
  }
  exchange_->PullAll([] {});
  EXPECT_FALSE(ps(0).Take<proto::ExchangeRequest>().at(0).pull().has_version());
}

TEST_F(ExchangeRoundTest, APushNamesItsRoundAndWantsNoValues) {
  Connect();
  PullAll(0.5, kRound.first);
  exchange_->BeginStep(
      kStep, [this] { events_.push_back("in"); }, kRound);
  for (const auto& [i, k] : PushedChunks()) {
    exchange_->PushChunk(i, k);
    const proto::Push push = ps(i).TakeWithPayload<proto::ExchangeRequest>().at(0).first.push();
    EXPECT_EQ(push.round().first(), kRound.first);
    EXPECT_EQ(push.round().count(), kRound.count);
    EXPECT_EQ(push.round().number(), kRound.number);
    EXPECT_EQ(push.pulled_version(), kRound.first);
    EXPECT_FALSE(push.want_values());
  }
  for (const auto& [i, k] : PushedChunks()) {
    EXPECT_THAT(TakeEvents(), IsEmpty());
    ExchangePeer::SendApplied(ps(i), kTimeline, kStep, k, kRound.first, {});
    loop_.RunUntilIdle();
    ExpectChunk(i, k, 0.5);
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("in"));
  // The next step of the round is of the same values.
  exchange_->BeginStep(
      kStep + 1, [] {}, kRound);
  const auto [i, k] = PushedChunks().front();
  exchange_->PushChunk(i, k);
  EXPECT_EQ(ps(i).TakeWithPayload<proto::ExchangeRequest>().at(0).first.push().pulled_version(),
            kRound.first);
}

TEST_F(ExchangeRoundTest, OneRejectionEndsThePullAtEveryPs) {
  Connect();
  PullVersion(10);
  SendValues(0, 0, 5, 10);
  RejectVersion(1, 10);
  EXPECT_THAT(TakeEvents(), ElementsAre("OUT_OF_RANGE"));
  EXPECT_EQ(exchange_->Waiting(), "");
  RejectVersion(0, 10);
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "once";
}

TEST_F(ExchangeRoundTest, LateAnswersOfAVersionThatWasRejectedAreNotTakenForTheNext) {
  Connect();
  PullVersion(10);
  RejectVersion(1, 10);
  EXPECT_THAT(TakeEvents(), ElementsAre("OUT_OF_RANGE"));
  PullVersion(14);
  SendAll(0, 5, 10);
  RejectVersion(1, 10);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  // Frozen values are what they are in every version.
  for (const auto& [i, k] : PushedChunks()) {
    ExpectChunk(i, k, -1);
    SendValues(i, k, 6, 14);
  }
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) {
      if (!model_.chunks(i)[k].pushed()) SendValues(i, k, 6, 0);
    }
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
}

TEST_F(ExchangeRoundTest, ANewTimelineEndsThePullOfAVersion) {
  Connect();
  PullVersion(10);
  exchange_->SetTimeline(kTimeline + 1);
  RejectVersion(1, 10);
  SendAll(0, 5, 10);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(parameters_, Each(-1));
}

}  // namespace
}  // namespace shoal
