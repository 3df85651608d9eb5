// What an exchange makes of timelines that are over, and of cuts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/exchange/parameter_exchange_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(ParameterExchangeTest, ARejectionOfAnotherTimelineLosesIt) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto chunks = PushedChunks();
  for (const auto& [i, k] : chunks) exchange_->PushChunk(i, k);
  ExchangePeer::Reject(ps(1), {kTimeline}, kTimeline + 1, "ps 1 is in timeline 5");
  ExchangePeer::Reject(ps(1), {kTimeline}, kTimeline + 1, "ps 1 is in timeline 5");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("lost: ps 1 is in timeline 5")) << "once";
  // All of it is over, on every ps.
  for (const auto& [i, k] : chunks) Acknowledge(i, k, 9);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ExpectChunk(chunks[0].first, chunks[0].second, 0);
  for (int i = 0; i < 2; ++i) ps(i).Take<proto::ExchangeRequest>();
  exchange_->PushChunk(chunks[0].first, chunks[0].second);
  EXPECT_THAT(ps(chunks[0].first).Take<proto::ExchangeRequest>(), IsEmpty());
  EXPECT_EQ(exchange_->Waiting(), "");
}

TEST_F(ParameterExchangeTest, ALateRejectionOfAnOlderTimelineSaysNothing) {
  Connect();
  exchange_->SetTimeline(kTimeline + 1);
  BeginStep();
  ExchangePeer::Reject(ps(1), {kTimeline}, 0, "ps 1 is empty");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ExchangePeer::Reject(ps(1), {kTimeline + 1}, 0, "ps 1 is empty");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("lost: ps 1 is empty"));
}

TEST_F(ParameterExchangeTest, AHelloOfAnotherTimelineLosesIt) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  Break(0);
  ExchangePeer::SendHello(ps(0), 0);  // it was started anew
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("lost: ps 0")));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) SendValues(i, k, 1);
  }
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, WithoutATimelineThereIsNoneToLose) {
  for (int i = 0; i < 2; ++i) ExchangePeer::SendHello(ps(i), 0);
  ExchangePeer::Reject(ps(0), {}, 3, "of whatever");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, AStepBeyondTheWindowIsNotPushedAgain) {
  Connect();
  exchange_->BeginStep(kStep, [this] { events_.push_back("step done"); });
  const auto [index, chunk] = PushedChunks().front();
  exchange_->PushChunk(index, chunk);
  loop_.RunUntilIdle();
  ps(index).Take<proto::ExchangeRequest>();
  ps(index).Close(absl::OutOfRangeError("step 12 is beyond the window"));
  loop_.RunUntilIdle();
  EXPECT_THAT(events_, ElementsAre("lost: step 12 is beyond the window"));
  loop_.Advance(seconds(2));
  ExchangePeer::SendHello(ps(index), kTimeline);
  loop_.RunUntilIdle();
  for (const proto::ExchangeRequest& request : ps(index).Take<proto::ExchangeRequest>())
    EXPECT_FALSE(request.has_push());
}

TEST_F(ParameterExchangeTest, TheNextTimelineBeginsAfresh) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("never"); });
  SendValues(0, 0, 1);
  exchange_->SetTimeline(kTimeline + 1);
  for (int i = 0; i < 2; ++i) ps(i).Take<proto::ExchangeRequest>();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ps(i).Take<proto::ExchangeRequest>().at(0).pull().timeline(), kTimeline + 1);
    for (int k = 0; k < ChunkCount(i); ++k) {
      SendValues(i, k, 3);  // of the old one
      EXPECT_THAT(TakeEvents(), IsEmpty());
      ExchangePeer::SendValues(ps(i), kTimeline + 1, k, 1, 0, model_.Filled(i, k, 4));
    }
  }
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
  ExpectChunk(0, 0, 4);
}

// --- Cuts ----------------------------------------------------------------------------------------

TEST_F(ParameterExchangeTest, PullsAHeldCutBesideTheLiveValues) {
  Connect();
  PullAll(1, 7);
  exchange_->PullCut(40, cut_, [this](absl::Status status) {
    events_.push_back(absl::StrCat("cut ", status.ToString()));
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ps(i).Take<proto::ExchangeRequest>().at(0).pull().cut_step(), 40u);
    for (int k = 0; k < ChunkCount(i); ++k) {
      EXPECT_THAT(TakeEvents(), IsEmpty());
      ExchangePeer::SendValues(ps(i), kTimeline, k, 5, 30, model_.Filled(i, k, 8));  // another cut
      ExchangePeer::SendValues(ps(i), kTimeline, k, 5, 40, model_.Filled(i, k, 9));
      loop_.RunUntilIdle();
    }
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("cut OK"));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) {
      ExpectChunk(i, k, 1);
      EXPECT_EQ(model_.Gather(i, k, cut_), model_.Filled(i, k, 9));
    }
  }
}

TEST_F(ParameterExchangeTest, ACutThatIsNotHeldAnyMoreIsAFailedPrecondition) {
  Connect();
  const auto done = [this](absl::Status status) { events_.push_back(status.ToString()); };
  exchange_->PullCut(40, cut_, done);
  ExchangePeer::SendValues(ps(0), kTimeline, 0, 5, 40, model_.Filled(0, 0, 9));
  ExchangePeer::Reject(ps(0), {kTimeline, 30}, kTimeline, "the cut at step 30 is not held");
  ExchangePeer::Reject(ps(1), {kTimeline, 40}, kTimeline, "the cut at step 40 is not held");
  ExchangePeer::Reject(ps(1), {kTimeline, 40}, kTimeline, "the cut at step 40 is not held");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty())
      << "the other one's rejection could be taken for one of the next cut, and another cut's says "
         "nothing";
  ExchangePeer::Reject(ps(0), {kTimeline, 40}, kTimeline, "the cut at step 40 is not held");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("FAILED_PRECONDITION: the cut at step 40 is not held"))
      << "the timeline goes on";
  // What still comes of it is dropped, and another cut can be pulled.
  exchange_->PullCut(53, cut_, done);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) {
      ExchangePeer::SendValues(ps(i), kTimeline, k, 5, 40, model_.Filled(i, k, 7));
      loop_.RunUntilIdle();
      EXPECT_THAT(TakeEvents(), IsEmpty());
      ExchangePeer::SendValues(ps(i), kTimeline, k, 5, 53, model_.Filled(i, k, 6));
    }
  }
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("OK"));
  EXPECT_EQ(model_.Gather(0, 0, cut_), model_.Filled(0, 0, 6));
}

TEST_F(ParameterExchangeTest, ARejectionWithoutAReasonIsOneToo) {
  Connect();
  exchange_->PullCut(40, cut_, [this](absl::Status status) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    events_.push_back("rejected");
  });
  for (int i = 0; i < 2; ++i) ExchangePeer::Reject(ps(i), {kTimeline, 40}, kTimeline, "");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("rejected"));
}

TEST_F(ParameterExchangeTest, ACutEndsWithItsTimeline) {
  Connect();
  exchange_->PullCut(40, cut_, [this](absl::Status status) {
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    events_.push_back("cancelled");
  });
  exchange_->SetTimeline(kTimeline + 1);
  EXPECT_THAT(TakeEvents(), ElementsAre("cancelled"));
}

}  // namespace
}  // namespace shoal
