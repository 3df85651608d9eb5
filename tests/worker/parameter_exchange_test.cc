#include "worker/parameter_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"
#include "tests/worker/exchange_peer.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kTimeline = 70, kStep = 12;

class ParameterExchangeTest : public testing::Test {
 protected:
  ParameterExchangeTest()
      : parameters_(model_.layout.size, -1),
        gradients_(model_.layout.size),
        cut_(model_.layout.size, -1) {
    std::iota(gradients_.begin(), gradients_.end(), 1000.0f);
    EXPECT_GE(model_.chunks(0).size(), 2u);
    EXPECT_GE(model_.chunks(1).size(), 2u);
    exchange_ = std::make_unique<ParameterExchange>(ParameterExchange::Options{
        .loop = &loop_,
        .network = &network_,
        .shard_map = &model_.shard_map,
        .layout = &model_.layout,
        .worker = 3,
        .addresses = {"ps-0:1", "ps-1:1"},
        .parameters = parameters_,
        .gradients = gradients_,
        .gradients_owner = gradients_owner_,
        .on_timeline_lost =
            [this](const std::string& why) { events_.push_back(absl::StrCat("lost: ", why)); },
        .on_failed =
            [this](const absl::Status& status) {
              events_.push_back(absl::StrCat("failed: ", std::string(status.message())));
            }});
  }

  FarEnd& ps(int index) { return network_.Newest(absl::StrCat("ps-", index, ":1")); }
  // Both ps say hello; their first messages are taken.
  void Connect() {
    for (int i = 0; i < 2; ++i) {
      ExchangePeer::SayHello(ps(i), kTimeline);
      ps(i).Take<proto::ExchangeRequest>();
    }
    loop_.RunUntilIdle();
    exchange_->SetTimeline(kTimeline);
  }
  void Break(int index) {
    ps(index).Close(absl::UnavailableError("connection reset"));
    loop_.Advance(seconds(2));
    EXPECT_TRUE(ps(index).open()) << "it tries again";
  }
  int ChunkCount(int index) const { return static_cast<int>(model_.chunks(index).size()); }
  std::vector<std::pair<int, int>> TrainableChunks() const {
    std::vector<std::pair<int, int>> chunks;
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < ChunkCount(i); ++k) {
        if (model_.chunks(i)[k].trainable) chunks.emplace_back(i, k);
      }
    }
    return chunks;
  }
  void SendValues(int index, int chunk, float value, uint64_t version = 1) {
    ExchangePeer::SendValues(ps(index), kTimeline, chunk, version, 0,
                             model_.Filled(index, chunk, value));
    loop_.RunUntilIdle();
  }
  void Acknowledge(int index, int chunk, float value, uint64_t version = 2) {
    ExchangePeer::SendApplied(ps(index), kTimeline, kStep, chunk, version,
                              model_.Filled(index, chunk, value));
    loop_.RunUntilIdle();
  }
  // Every chunk arrives, at this version.
  void PullAll(float value, uint64_t version) {
    exchange_->PullAll([this] { events_.push_back("pulled"); });
    for (int i = 0; i < 2; ++i) {
      ps(i).Take<proto::ExchangeRequest>();
      for (int k = 0; k < ChunkCount(i); ++k) SendValues(i, k, value, version);
    }
    EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
  }
  void BeginStep() {
    exchange_->BeginStep(kStep, [this] { events_.push_back("applied"); });
  }
  // The values of a chunk in `parameters_` are all this one.
  void ExpectChunk(int index, int chunk, float value) {
    EXPECT_EQ(model_.Gather(index, chunk, parameters_), model_.Filled(index, chunk, value))
        << "ps " << index << " chunk " << chunk;
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  const SmallModel model_;
  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  const std::shared_ptr<const void> gradients_owner_ = std::make_shared<int>();
  std::vector<float> cut_;
  std::vector<std::string> events_;
  std::unique_ptr<ParameterExchange> exchange_;
};

TEST_F(ParameterExchangeTest, IntroducesItself) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ps(i).method(), kExchangeMethod);
    const auto requests = ps(i).Take<proto::ExchangeRequest>();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].hello().version(), kVersion);
    EXPECT_EQ(requests[0].hello().worker(), 3u);
    EXPECT_EQ(requests[0].hello().shard_map_fingerprint(), model_.shard_map.Fingerprint());
  }
  exchange_->SetTimeline(kTimeline);
  exchange_->PullAll([] {});
  EXPECT_THAT(ps(0).Take<proto::ExchangeRequest>(), IsEmpty())
      << "not before the ps has said hello";
  ExchangePeer::SayHello(ps(0), kTimeline);
  loop_.RunUntilIdle();
  EXPECT_THAT(ps(0).Take<proto::ExchangeRequest>(), SizeIs(1));
}

TEST_F(ParameterExchangeTest, PullsEveryChunk) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  for (int i = 0; i < 2; ++i) {
    const auto requests = ps(i).Take<proto::ExchangeRequest>();
    ASSERT_EQ(requests.size(), 1u) << "one for a run of chunks";
    EXPECT_EQ(requests[0].pull().timeline(), kTimeline);
    EXPECT_EQ(requests[0].pull().first_chunk(), 0u);
    EXPECT_EQ(requests[0].pull().chunk_count(), static_cast<uint32_t>(ChunkCount(i)));
    EXPECT_EQ(requests[0].pull().cut_step(), 0u);
  }
  for (int i = 0; i < 2; ++i) {
    for (int k = ChunkCount(i) - 1; k >= 0; --k) {
      EXPECT_THAT(TakeEvents(), IsEmpty());
      SendValues(i, k, static_cast<float>(10 * i + k));
    }
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) ExpectChunk(i, k, static_cast<float>(10 * i + k));
  }
  EXPECT_EQ(exchange_->Waiting(), "");
  // What nobody asked for changes nothing.
  SendValues(0, 0, 99);
  ExpectChunk(0, 0, 0);
}

TEST_F(ParameterExchangeTest, AfterABrokenStreamItAsksForWhatIsMissing) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  for (int k = 0; k < ChunkCount(1); ++k) SendValues(1, k, 5);
  ASSERT_GE(ChunkCount(0), 3);
  SendValues(0, 1, 5);
  Break(0);
  EXPECT_EQ(exchange_->Waiting(), "ps 0 at ps-0:1 (no connection: connection reset)");
  ps(0).Take<proto::ExchangeRequest>();
  ExchangePeer::SayHello(ps(0), kTimeline);
  loop_.RunUntilIdle();
  EXPECT_EQ(exchange_->Waiting(), "ps 0 at ps-0:1 (no answer)");
  const auto requests = ps(0).Take<proto::ExchangeRequest>();
  ASSERT_EQ(requests.size(), 2u) << "chunk 1 is here";
  EXPECT_EQ(requests[0].pull().first_chunk(), 0u);
  EXPECT_EQ(requests[0].pull().chunk_count(), 1u);
  EXPECT_EQ(requests[1].pull().first_chunk(), 2u);
  EXPECT_EQ(requests[1].pull().chunk_count(), static_cast<uint32_t>(ChunkCount(0)) - 2);
  for (int k = 0; k < ChunkCount(0); ++k) SendValues(0, k, 5);
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
}

TEST_F(ParameterExchangeTest, AStepIsOverWhenEveryChunkIsAcknowledged) {
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  for (const auto& [i, k] : TrainableChunks()) {
    exchange_->PushChunk(i, k);
    const auto requests = ps(i).TakeWithPayload<proto::ExchangeRequest>();
    ASSERT_EQ(requests.size(), 1u);
    const proto::Push& push = requests[0].first.push();
    EXPECT_EQ(push.timeline(), kTimeline);
    EXPECT_EQ(push.step(), kStep);
    EXPECT_EQ(push.chunk(), static_cast<uint32_t>(k));
    EXPECT_EQ(push.pulled_version(), 7u);
    EXPECT_TRUE(push.want_values());
    EXPECT_EQ(requests[0].second, model_.Gather(i, k, gradients_));
  }
  for (const auto& [i, k] : TrainableChunks()) {
    EXPECT_THAT(TakeEvents(), IsEmpty());
    Acknowledge(i, k, 0.25, 8);
    ExpectChunk(i, k, 0.25);
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
}

// At the end of a worker the transport may still be reading.
TEST_F(ParameterExchangeTest, WhatIsBeingSentKeepsTheGradientsWhereTheyAre) {
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  for (const auto& [i, k] : TrainableChunks()) exchange_->PushChunk(i, k);
  FarEnd& far = ps(0);
  exchange_.reset();
  EXPECT_GT(gradients_owner_.use_count(), 1);
  far.Take<proto::ExchangeRequest>();
  ps(1).Take<proto::ExchangeRequest>();
  EXPECT_EQ(gradients_owner_.use_count(), 1);
}

// The transport may still be reading a gradient when its timeline is over, and a ps that does not
// know so may take what it reads.
TEST_F(ParameterExchangeTest, ADroppedGradientIsNotOverwrittenWhileItIsBeingSent) {
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  const auto [i, k] = TrainableChunks().front();
  exchange_->PushChunk(i, k);
  exchange_->SetTimeline(kTimeline + 1);
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  for (int each = 0; each < 2; ++each) {
    for (int chunk = 0; chunk < ChunkCount(each); ++chunk) {
      ExchangePeer::SendValues(ps(each), kTimeline + 1, chunk, 8, 0, model_.Filled(each, chunk, 1));
    }
  }
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(exchange_->Waiting(), HasSubstr("former timeline"));
  ps(i).Take<proto::ExchangeRequest>();  // it has been read
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
}

TEST_F(ParameterExchangeTest, AGradientIsOfTheVersionsThatWereHereWhenItsStepBegan) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto [i, k] = TrainableChunks()[0];
  exchange_->PushChunk(i, k);
  ps(i).Take<proto::ExchangeRequest>();
  Acknowledge(i, k, 1, /*version=*/11);  // others have pushed meanwhile
  const auto [other_ps, other] = TrainableChunks()[1];
  exchange_->PushChunk(other_ps, other);
  EXPECT_EQ(ps(other_ps).Take<proto::ExchangeRequest>().at(0).push().pulled_version(), 7u);
  exchange_->BeginStep(kStep + 1, [] {});
  exchange_->PushChunk(i, k);
  EXPECT_EQ(ps(i).Take<proto::ExchangeRequest>().at(0).push().pulled_version(), 11u);
}

TEST_F(ParameterExchangeTest, AfterABrokenStreamItPushesWhatIsNotAcknowledged) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  std::vector<int> chunks;
  for (const auto& [i, k] : TrainableChunks()) {
    if (i == 0) chunks.push_back(k);
  }
  ASSERT_GE(chunks.size(), 3u);
  exchange_->PushChunk(0, chunks[0]);
  exchange_->PushChunk(0, chunks[1]);
  Acknowledge(0, chunks[0], 1);
  Break(0);
  exchange_->PushChunk(0, chunks[2]);  // complete while there is no stream
  const auto hello = ps(0).Take<proto::ExchangeRequest>();
  ASSERT_THAT(hello, SizeIs(1));
  EXPECT_TRUE(hello[0].has_hello());
  ExchangePeer::SayHello(ps(0), kTimeline);
  loop_.RunUntilIdle();
  const auto again = ps(0).TakeWithPayload<proto::ExchangeRequest>();
  ASSERT_EQ(again.size(), 2u);
  for (size_t n = 0; n < 2; ++n) {
    EXPECT_EQ(again[n].first.push().chunk(), static_cast<uint32_t>(chunks[n + 1]));
    EXPECT_EQ(again[n].first.push().step(), kStep);
    EXPECT_EQ(again[n].first.push().pulled_version(), 7u);
    EXPECT_EQ(again[n].second, model_.Gather(0, chunks[n + 1], gradients_));
  }
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, AnAcknowledgementCountsOnce) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto chunks = TrainableChunks();
  for (const auto& [i, k] : chunks) exchange_->PushChunk(i, k);
  for (size_t n = 0; n < chunks.size(); ++n) Acknowledge(chunks[0].first, chunks[0].second, 1 + n);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ExpectChunk(chunks[0].first, chunks[0].second, 1);  // nor do its values
  for (const auto& [i, k] : chunks) Acknowledge(i, k, 2);
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
  Acknowledge(chunks[0].first, chunks[0].second, 3);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, ForeignAnswersCountForNothing) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto chunks = TrainableChunks();
  const auto [i, k] = chunks[0];
  Acknowledge(i, k, 9);  // it was not pushed yet
  for (const auto& [ps, chunk] : chunks) exchange_->PushChunk(ps, chunk);
  const std::string values = model_.Filled(i, k, 9);
  ExchangePeer::SendApplied(ps(i), kTimeline, kStep - 1, k, 8, values);
  ExchangePeer::SendApplied(ps(i), kTimeline - 1, kStep, k, 8, values);
  ExchangePeer::SendApplied(ps(i), kTimeline, kStep, UINT32_MAX, 8, values);
  ExchangePeer::SendApplied(ps(i), kTimeline, kStep, 1000, 8, values);
  ExchangePeer::SendValues(ps(i), kTimeline, UINT32_MAX, 8, 0, values);
  ExchangePeer::SendValues(ps(i), kTimeline, k, 8, /*cut_step=*/5, values);
  ps(i).Send(proto::ExchangeReply());
  loop_.RunUntilIdle();
  ExpectChunk(i, k, 0);
  for (size_t n = 1; n < chunks.size(); ++n) Acknowledge(chunks[n].first, chunks[n].second, 1);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, AChunkOfAWrongSizeEndsTheWorkerAndChangesNothing) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  const std::string whole = model_.Filled(1, 0, 9);
  for (const std::string& payload : {std::string(), whole + "1234", whole.substr(4)}) {
    ExchangePeer::SendValues(ps(1), kTimeline, 0, 1, 0, payload);
    loop_.RunUntilIdle();
    EXPECT_THAT(TakeEvents(),
                ElementsAre(HasSubstr(absl::StrCat("sent ", payload.size(), " bytes of chunk 0"))));
  }
  EXPECT_THAT(parameters_, Each(-1.0f));
}

// --- The end of a timeline -----------------------------------------------------------------------

TEST_F(ParameterExchangeTest, ARefusalOfAnotherTimelineLosesIt) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto chunks = TrainableChunks();
  for (const auto& [i, k] : chunks) exchange_->PushChunk(i, k);
  ExchangePeer::Refuse(ps(1), {kTimeline}, kTimeline + 1, "ps 1 is in timeline 5");
  ExchangePeer::Refuse(ps(1), {kTimeline}, kTimeline + 1, "ps 1 is in timeline 5");
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

TEST_F(ParameterExchangeTest, ALateRefusalOfAnOlderTimelineSaysNothing) {
  Connect();
  exchange_->SetTimeline(kTimeline + 1);
  BeginStep();
  ExchangePeer::Refuse(ps(1), {kTimeline}, 0, "ps 1 is empty");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ExchangePeer::Refuse(ps(1), {kTimeline + 1}, 0, "ps 1 is empty");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("lost: ps 1 is empty"));
}

TEST_F(ParameterExchangeTest, AHelloOfAnotherTimelineLosesIt) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  Break(0);
  ExchangePeer::SayHello(ps(0), 0);  // it was started anew
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("lost: ps 0")));
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) SendValues(i, k, 1);
  }
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, WithoutATimelineThereIsNoneToLose) {
  for (int i = 0; i < 2; ++i) ExchangePeer::SayHello(ps(i), 0);
  ExchangePeer::Refuse(ps(0), {}, 3, "of whatever");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(ParameterExchangeTest, AStepBeyondTheWindowIsNotPushedAgain) {
  Connect();
  exchange_->BeginStep(kStep, [this] { events_.push_back("step done"); });
  const auto [index, chunk] = TrainableChunks().front();
  exchange_->PushChunk(index, chunk);
  loop_.RunUntilIdle();
  ps(index).Take<proto::ExchangeRequest>();
  ps(index).Close(absl::OutOfRangeError("step 12 is beyond the window"));
  loop_.RunUntilIdle();
  EXPECT_THAT(events_, ElementsAre("lost: step 12 is beyond the window"));
  loop_.Advance(seconds(2));
  ExchangePeer::SayHello(ps(index), kTimeline);
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
  ExchangePeer::Refuse(ps(0), {kTimeline, 30}, kTimeline, "the cut at step 30 is not held");
  ExchangePeer::Refuse(ps(1), {kTimeline, 40}, kTimeline, "the cut at step 40 is not held");
  ExchangePeer::Refuse(ps(1), {kTimeline, 40}, kTimeline, "the cut at step 40 is not held");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty())
      << "the other one's refusal could be taken for one of the next cut, and another cut's says "
         "nothing";
  ExchangePeer::Refuse(ps(0), {kTimeline, 40}, kTimeline, "the cut at step 40 is not held");
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

TEST_F(ParameterExchangeTest, ARefusalWithoutAReasonIsOneToo) {
  Connect();
  exchange_->PullCut(40, cut_, [this](absl::Status status) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    events_.push_back("refused");
  });
  for (int i = 0; i < 2; ++i) ExchangePeer::Refuse(ps(i), {kTimeline, 40}, kTimeline, "");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("refused"));
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

// --- Streams -------------------------------------------------------------------------------------

TEST_F(ParameterExchangeTest, APsThatCannotBeSpokenWithIsAFailure) {
  ps(0).Close(absl::FailedPreconditionError("worker 3 is Shoal 1, this process is Shoal 2"));
  loop_.Advance(seconds(10));
  EXPECT_THAT(TakeEvents(), ElementsAre("failed: worker 3 is Shoal 1, this process is Shoal 2"));
  EXPECT_EQ(network_.CountOf("ps-0:1"), 1) << "it is not tried again";
  ps(1).SendGarbage();
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("failed: ps-1:1 does not speak")));
}

TEST_F(ParameterExchangeTest, TriesAgainWithGrowingPauses) {
  for (int tries = 1; tries <= 5; ++tries) {
    EXPECT_EQ(network_.CountOf("ps-0:1"), tries);
    ps(0).Close(absl::UnavailableError("refused"));
    const Time most = milliseconds(50) * (1 << (tries - 1));
    loop_.Advance(most / 2 - milliseconds(1));
    EXPECT_EQ(network_.CountOf("ps-0:1"), tries);
    loop_.Advance(most / 2 + milliseconds(1));
  }
  EXPECT_EQ(network_.CountOf("ps-1:1"), 1);
  ps(0).Close(absl::UnavailableError("refused"));
  loop_.RunUntilIdle();
  exchange_.reset();
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.CountOf("ps-0:1"), 6) << "not after its end";
}

}  // namespace
}  // namespace shoal
