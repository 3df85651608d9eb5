// What an exchange asks and pushes, and what it does with the answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/exchange/parameter_exchange_fixture.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(ParameterExchangeTest, IntroducesItself) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ps(i).method(), kExchangeMethod);
    const auto requests = ps(i).Take<proto::ExchangeRequest>();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].hello().version(), kVersion);
    EXPECT_EQ(requests[0].hello().worker(), 3u);
    EXPECT_EQ(requests[0].hello().shard_map_fingerprint(), model_.shard_map.Fingerprint());
    EXPECT_EQ(requests[0].hello().job_fingerprint(), 0xabcdef01u);
  }
  exchange_->SetTimeline(kTimeline);
  exchange_->PullAll([] {});
  EXPECT_THAT(ps(0).Take<proto::ExchangeRequest>(), IsEmpty())
      << "not before the ps has said hello";
  ExchangePeer::SendHello(ps(0), kTimeline);
  loop_.RunUntilIdle();
  EXPECT_THAT(ps(0).Take<proto::ExchangeRequest>(), SizeIs(1));
}

// What a ps counts, it counts by this index.
TEST_F(ParameterExchangeTest, AnotherIndexIsSaidOnEveryStream) {
  Connect();
  exchange_->SetWorker(3);
  EXPECT_THAT(ps(0).Take<proto::ExchangeRequest>(), IsEmpty()) << "it is the same";
  exchange_->SetWorker(8);
  for (int i = 0; i < 2; ++i) {
    const auto requests = ps(i).Take<proto::ExchangeRequest>();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0].hello().worker(), 8u);
  }
  Break(0);
  EXPECT_EQ(ps(0).Take<proto::ExchangeRequest>().at(0).hello().worker(), 8u);
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
  EXPECT_THAT(exchange_->Waiting(),
              AllOf(HasSubstr("ps 0"), HasSubstr("ps-0:1"), HasSubstr("connection reset")));
  ps(0).Take<proto::ExchangeRequest>();
  ExchangePeer::SendHello(ps(0), kTimeline);
  loop_.RunUntilIdle();
  EXPECT_THAT(exchange_->Waiting(),
              AllOf(HasSubstr("ps 0"), HasSubstr("ps-0:1"), Not(HasSubstr("connection reset"))));
  const auto requests = ps(0).Take<proto::ExchangeRequest>();
  ASSERT_EQ(requests.size(), 2u) << "chunk 1 is here";
  EXPECT_EQ(requests[0].pull().first_chunk(), 0u);
  EXPECT_EQ(requests[0].pull().chunk_count(), 1u);
  EXPECT_EQ(requests[1].pull().first_chunk(), 2u);
  EXPECT_EQ(requests[1].pull().chunk_count(), static_cast<uint32_t>(ChunkCount(0)) - 2);
  for (int k = 0; k < ChunkCount(0); ++k) SendValues(0, k, 5);
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
}

TEST_F(ParameterExchangeTest, TheWaitNamesALookupForAsLongAsItTakes) {
  exchange_->SetTimeline(kTimeline);
  exchange_->PullAll([] {});
  network_.looked_up = {"ps-0:1"};
  EXPECT_EQ(exchange_->Waiting(),
            "ps 0 at ps-0:1 (no connection: looking up the name), ps 1 at ps-1:1 (no connection)");
  Break(0);
  EXPECT_THAT(exchange_->Waiting(), HasSubstr("ps-0:1 (no connection: looking up the name)"));
  network_.looked_up = {};
  EXPECT_THAT(exchange_->Waiting(), HasSubstr("ps-0:1 (no connection: connection reset)"));
}

TEST_F(ParameterExchangeTest, SaysOfEachChunkThatItIsThere) {
  Connect();
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  EXPECT_TRUE(exchange_->pulling());
  size_t missing = exchange_->Missing().size();
  EXPECT_EQ(missing, model_.chunks(0).size() + model_.chunks(1).size());
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < ChunkCount(i); ++k) {
      SendValues(i, k, 5);
      EXPECT_EQ(arrived_.back(), std::pair(i, k));
      EXPECT_EQ(exchange_->Missing().size(), --missing);
    }
  }
  EXPECT_FALSE(exchange_->pulling());
}

// Frozen ones come first where they are of the first layers, though their chunks are the last of
// the ps; nobody waits for moving averages. Over another stream it is the same.
TEST_F(ParameterExchangeTest, ParametersArePulledInTheOrderOfTheModel) {
  const std::vector<Variable> variables = {{"a/kernel", {40}, UpdateRule::kFrozen},
                                           {"norm/mean", {16}, UpdateRule::kMovingAverage},
                                           {"b/kernel", {40}},
                                           {"c/kernel", {32}, UpdateRule::kFrozen}};
  const ShardMap map(variables, 1, {.min_shard_bytes = 64, .chunk_bytes = 64});
  const ModelLayout layout(variables);
  std::vector<float> parameters(layout.size);
  ParameterExchange exchange({.loop = &loop_,
                              .network = &network_,
                              .shard_map = &map,
                              .layout = &layout,
                              .addresses = {"ps-9:1"},
                              .parameters = parameters,
                              .gradients = gradients_,
                              .gradients_owner = gradients_owner_,
                              .on_arrived = [](int, int) {}});
  exchange.SetTimeline(kTimeline);
  exchange.PullAll([] {});
  for (int stream = 0; stream < 2; ++stream) {
    FarEnd& peer = network_.Newest("ps-9:1");
    ExchangePeer::SendHello(peer, kTimeline);
    loop_.RunUntilIdle();
    std::vector<int> asked;  // variables
    for (const proto::ExchangeRequest& request : peer.Take<proto::ExchangeRequest>()) {
      for (uint32_t k = 0; k < request.pull().chunk_count(); ++k)
        asked.push_back(map.ps(0).chunks[request.pull().first_chunk() + k].pieces[0].variable);
    }
    EXPECT_THAT(asked, ElementsAre(0, 0, 0, 2, 2, 2, 3, 3, 1));
    peer.Close(absl::UnavailableError("connection reset"));
    loop_.Advance(std::chrono::seconds(2));
  }
}

TEST_F(ParameterExchangeTest, AStepIsOverWhenEveryChunkIsAcknowledged) {
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  for (const auto& [i, k] : PushedChunks()) {
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
  for (const auto& [i, k] : PushedChunks()) {
    EXPECT_THAT(TakeEvents(), IsEmpty());
    Acknowledge(i, k, 0.25, 8);
    ExpectChunk(i, k, 0.25);
    EXPECT_EQ(arrived_.back(), std::pair(i, k)) << "said as soon as it is there";
  }
  EXPECT_EQ(arrived_.size(), PushedChunks().size());
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
}

// Again over another stream, too, and of this step alone.
TEST_F(ParameterExchangeTest, AStepThatIsSkippedIsPushedAsThatChunkByChunk) {
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  exchange_->SkipGradient();
  const auto expect_nothing = [this](int i, int k) {
    const auto requests = ps(i).TakeWithPayload<proto::ExchangeRequest>();
    ASSERT_EQ(requests.size(), 1u);
    const proto::Push& push = requests[0].first.push();
    EXPECT_EQ(push.step(), kStep);
    EXPECT_EQ(push.chunk(), static_cast<uint32_t>(k));
    EXPECT_EQ(push.pulled_version(), 7u);
    EXPECT_TRUE(push.want_values());
    EXPECT_TRUE(push.skip());
    EXPECT_EQ(requests[0].second, "");
  };
  const auto [first_ps, first] = PushedChunks().front();
  exchange_->PushChunk(first_ps, first);
  expect_nothing(first_ps, first);
  Break(first_ps);
  ps(first_ps).Take<proto::ExchangeRequest>();
  ExchangePeer::SendHello(ps(first_ps), kTimeline);
  loop_.RunUntilIdle();
  expect_nothing(first_ps, first);
  for (const auto& [i, k] : PushedChunks()) {
    if (std::pair(i, k) != std::pair(first_ps, first)) {
      exchange_->PushChunk(i, k);
      expect_nothing(i, k);
    }
  }
  for (const auto& [i, k] : PushedChunks()) {
    EXPECT_THAT(TakeEvents(), IsEmpty());
    Acknowledge(i, k, 0.25, 8);
    ExpectChunk(i, k, 0.25);
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
  exchange_->BeginStep(kStep + 1, [] {});
  exchange_->PushChunk(first_ps, first);
  const auto next = ps(first_ps).TakeWithPayload<proto::ExchangeRequest>();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_FALSE(next[0].first.push().skip());
  EXPECT_EQ(next[0].second, model_.Gather(first_ps, first, gradients_));
}

// What a push would bring is not what the next step is computed from.
TEST_F(ParameterExchangeTest, AWorkerThatPullsBeforeStepsPushesWithoutAPull) {
  Make({.pulls_below = 1'000'000});
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  for (const auto& [i, k] : PushedChunks()) {
    exchange_->PushChunk(i, k);
    EXPECT_FALSE(ps(i).TakeWithPayload<proto::ExchangeRequest>()[0].first.push().want_values());
    ExchangePeer::SendApplied(ps(i), kTimeline, kStep, k, 8, {});
    loop_.RunUntilIdle();
    ExpectChunk(i, k, 0.5);
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
  EXPECT_THAT(arrived_, IsEmpty());
  // The frozen ones are here.
  exchange_->PullAll([this] { events_.push_back("pulled"); });
  for (const auto& [i, k] : PushedChunks()) SendValues(i, k, 0.75, 8);
  EXPECT_THAT(TakeEvents(), ElementsAre("pulled"));
}

// At the end of a worker the transport may still be reading.
TEST_F(ParameterExchangeTest, GradientsStayInPlaceWhileTheyAreSent) {
  Connect();
  PullAll(0.5, 7);
  BeginStep();
  for (const auto& [i, k] : PushedChunks()) exchange_->PushChunk(i, k);
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
  const auto [i, k] = PushedChunks().front();
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
  const auto [i, k] = PushedChunks()[0];
  exchange_->PushChunk(i, k);
  ps(i).Take<proto::ExchangeRequest>();
  Acknowledge(i, k, 1, /*version=*/11);  // others have pushed meanwhile
  const auto [other_ps, other] = PushedChunks()[1];
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
  for (const auto& [i, k] : PushedChunks()) {
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
  ExchangePeer::SendHello(ps(0), kTimeline);
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

TEST_F(ParameterExchangeTest, AnOutdatedStreamIsReopenedWhenEveryRequestIsAnswered) {
  Connect();
  PullAll(1, 5);
  BeginStep();
  std::vector<std::pair<int, int>> rest = PushedChunks();
  const auto [first_ps, first] = rest.front();
  ASSERT_EQ(first_ps, 0);
  rest.erase(rest.begin());
  exchange_->PushChunk(0, first);
  for (int i = 0; i < 2; ++i) ps(i).SayOutdated();
  loop_.RunUntilIdle();
  EXPECT_FALSE(ps(0).finished().has_value());
  EXPECT_TRUE(ps(1).finished().has_value()) << "nothing is under way there";
  Acknowledge(0, first, 3);
  EXPECT_TRUE(ps(0).finished().has_value());
  // The rest of the step waits for the next streams.
  ps(0).Take<proto::ExchangeRequest>();
  for (const auto& [i, k] : rest) exchange_->PushChunk(i, k);
  EXPECT_THAT(ps(0).Take<proto::ExchangeRequest>(), IsEmpty());
  for (int i = 0; i < 2; ++i) ps(i).Close(absl::OkStatus());
  loop_.RunUntilIdle();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(network_.CountOf(absl::StrCat("ps-", i, ":1")), 2) << "without a pause";
    ExchangePeer::SendHello(ps(i), kTimeline);
  }
  loop_.RunUntilIdle();
  for (const auto& [i, k] : rest) Acknowledge(i, k, 3);
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
}

TEST_F(ParameterExchangeTest, AnAcknowledgementCountsOnce) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto chunks = PushedChunks();
  for (const auto& [i, k] : chunks) exchange_->PushChunk(i, k);
  for (size_t n = 0; n < chunks.size(); ++n) Acknowledge(chunks[0].first, chunks[0].second, 1 + n);
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ExpectChunk(chunks[0].first, chunks[0].second, 1);  // nor do its values
  for (const auto& [i, k] : chunks) Acknowledge(i, k, 2);
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
  Acknowledge(chunks[0].first, chunks[0].second, 3);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

// As those of large models are, so that the loop has time for the gradients that leave meanwhile.
class ValuesCopiedAsideTest : public ParameterExchangeTest {
 protected:
  // A step of which all chunks are pushed, with copies that wait.
  ValuesCopiedAsideTest() {
    Make({.min_copied_aside_bytes = 1});
    Connect();
    PullAll(0, 7);
    BeginStep();
    for (const auto& [i, k] : chunks_) exchange_->PushChunk(i, k);
    loop_.set_hold_brief(true);
  }
  void Copy() {
    loop_.set_hold_brief(false);
    loop_.RunUntilIdle();
  }

  const std::vector<std::pair<int, int>> chunks_ = PushedChunks();
};

TEST_F(ValuesCopiedAsideTest, TheStepIsAppliedWhenTheyAreThere) {
  for (const auto& [i, k] : chunks_) Acknowledge(i, k, static_cast<float>(1 + k));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(arrived_, IsEmpty());
  for (const auto& [i, k] : chunks_) ExpectChunk(i, k, 0);
  Copy();
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
  EXPECT_EQ(arrived_, chunks_);
  for (const auto& [i, k] : chunks_) ExpectChunk(i, k, static_cast<float>(1 + k));
}

// When they come the next step may have begun to read.
TEST_F(ValuesCopiedAsideTest, ARepeatedAnswerIsNotCopied) {
  for (const auto& [i, k] : chunks_) Acknowledge(i, k, 1);
  for (const auto& [i, k] : chunks_) Acknowledge(i, k, 2);
  Copy();
  EXPECT_THAT(TakeEvents(), ElementsAre("applied"));
  for (const auto& [i, k] : chunks_) ExpectChunk(i, k, 1);
}

TEST_F(ValuesCopiedAsideTest, AnAnsweredGradientIsNotPushedAgain) {
  const auto [i, k] = chunks_[0];
  Acknowledge(i, k, 1);
  Break(i);
  ps(i).Take<proto::ExchangeRequest>();
  ExchangePeer::SendHello(ps(i), kTimeline);
  loop_.RunPosted();
  for (const auto& request : ps(i).Take<proto::ExchangeRequest>())
    EXPECT_NE(request.push().chunk(), static_cast<uint32_t>(k));
}

TEST_F(ValuesCopiedAsideTest, NothingIsWrittenForAnotherTimeline) {
  for (const auto& [i, k] : chunks_) Acknowledge(i, k, 1);
  exchange_->SetTimeline(kTimeline + 1);
  Copy();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(arrived_, IsEmpty());
  for (const auto& [i, k] : chunks_) ExpectChunk(i, k, 0);
}

TEST_F(ValuesCopiedAsideTest, NothingIsWrittenAfterTheExchangeIsGone) {
  for (const auto& [i, k] : chunks_) Acknowledge(i, k, 1);
  exchange_.reset();
  Copy();
  for (const auto& [i, k] : chunks_) ExpectChunk(i, k, 0);
}

TEST_F(ValuesCopiedAsideTest, OnesOfAnotherSizeEndTheWorker) {
  const auto [i, k] = chunks_[0];
  ExchangePeer::SendApplied(ps(i), kTimeline, kStep, k, 8, model_.Filled(i, k, 1) + "more");
  Copy();
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("another build")));
  ExpectChunk(i, k, 0);
}

TEST_F(ParameterExchangeTest, ForeignAnswersCountForNothing) {
  Connect();
  PullAll(0, 7);
  BeginStep();
  const auto chunks = PushedChunks();
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
                ElementsAre(AllOf(HasSubstr(absl::StrCat(" ", payload.size(), " bytes ")),
                                  HasSubstr("chunk 0"))));
  }
  EXPECT_THAT(parameters_, Each(-1.0f));
}

// --- Rejections and pauses -----------------------------------------------------------------------

TEST_F(ParameterExchangeTest, APsThatCannotBeSpokenWithIsAFailure) {
  ps(0).Close(absl::FailedPreconditionError("worker 3 is Shoal 1, this process is Shoal 2"));
  loop_.Advance(seconds(10));
  EXPECT_THAT(TakeEvents(), ElementsAre("failed: worker 3 is Shoal 1, this process is Shoal 2"));
  EXPECT_EQ(network_.CountOf("ps-0:1"), 1) << "it is not tried again";
  ps(1).SendGarbage();
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("failed: ps 1 at ps-1:1 ")));
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

TEST_F(ParameterExchangeTest, PausesStartOverAfterAStreamWithAnswers) {
  for (int i = 0; i < 5; ++i) {
    ps(0).Close(absl::UnavailableError("refused"));
    loop_.Advance(seconds(1));
  }
  Connect();
  exchange_->PullAll([] {});
  SendValues(0, 0, 1);
  loop_.Advance(seconds(1));
  const int before = network_.CountOf("ps-0:1");
  ps(0).Close(absl::UnavailableError("connection reset"));
  loop_.Advance(milliseconds(50));
  EXPECT_EQ(network_.CountOf("ps-0:1"), before + 1);
}

}  // namespace
}  // namespace shoal
