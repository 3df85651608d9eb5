#include "common/rpc/reconnecting_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/parameter_server.pb.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ReconnectingStreamTest : public testing::Test {
 protected:
  ReconnectingStreamTest() {
    stream_ = std::make_unique<ReconnectingStream>(ReconnectingStream::Options{
        .loop = &loop_,
        .network = &network_,
        .server = std::string("ps-0:1"),
        .method = kControlMethod,
        .seed = 5,
        .on_open =
            [this] {
              events_.push_back("open");
              SendRequest();
            },
        .on_message = [this](Message) { events_.push_back("message"); },
        .on_closed =
            [this](const absl::Status& status) {
              EXPECT_TRUE(stream_ == nullptr || !stream_->open());
              events_.push_back(absl::StrCat("closed ", absl::StatusCodeToString(status.code())));
              on_closed_();
            },
        .is_quiet = [this] { return quiet_; },
        .on_reopen = [this] { events_.push_back("reopen"); }});
    stream_->Open();
  }

  FarEnd& peer() { return network_.Newest("ps-0:1"); }
  void SendRequest() {
    proto::ControlRequest request;
    request.mutable_stop();
    stream_->Send(MakeMessage(request));
  }
  void Break() {
    peer().Close(absl::UnavailableError("broken"));
    loop_.RunUntilIdle();
  }
  // Returns the time until the next stream is open; at most 10 s.
  Time Pause() {
    const size_t before = network_.opened().size();
    const Time begin = loop_.Now();
    while (network_.opened().size() == before && loop_.Now() - begin < seconds(10))
      loop_.Advance(milliseconds(1));
    return loop_.Now() - begin;
  }
  void SayOutdated() {
    peer().SayOutdated();
    loop_.RunUntilIdle();
  }
  // The peer has read all messages of a stream that was finished.
  void EndInOrder() {
    ASSERT_TRUE(peer().finished().has_value());
    EXPECT_TRUE(peer().finished()->ok());
    peer().Close(absl::OkStatus());
    loop_.RunUntilIdle();
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<std::string> events_;
  bool quiet_ = true;
  std::function<void()> on_closed_ = [this] { stream_->OpenLater(); };
  std::unique_ptr<ReconnectingStream> stream_;
};

TEST_F(ReconnectingStreamTest, SendsTheHelloOnEachStream) {
  EXPECT_EQ(peer().method(), kControlMethod);
  EXPECT_THAT(peer().Take<proto::ControlRequest>(), SizeIs(1));
  peer().Send(proto::ControlReply());
  loop_.RunUntilIdle();
  Break();
  EXPECT_THAT(TakeEvents(), ElementsAre("open", "message", "closed UNAVAILABLE"));
  Pause();
  EXPECT_THAT(TakeEvents(), ElementsAre("open"));
  EXPECT_THAT(peer().Take<proto::ControlRequest>(), SizeIs(1));
}

TEST_F(ReconnectingStreamTest, PausesGrowUntilAnAcceptedStreamLasts) {
  for (int i = 0; i < 10; ++i) {
    Break();
    const Time max = std::min<Time>(milliseconds(50) * (1 << i), seconds(1));
    const Time pause = Pause();
    EXPECT_LE(pause, max + milliseconds(1)) << i;
    EXPECT_GE(pause, max / 2) << i;
  }
  stream_->MarkAccepted();
  loop_.Advance(seconds(1));
  Break();
  EXPECT_LE(Pause(), milliseconds(51));
}

TEST_F(ReconnectingStreamTest, AStreamThatBreaksSoonOrIsNotAcceptedKeepsPauses) {
  for (int i = 0; i < 10; ++i) {
    stream_->MarkAccepted();
    Break();
    Pause();
  }
  stream_->MarkAccepted();
  loop_.Advance(milliseconds(999));
  Break();
  EXPECT_GE(Pause(), milliseconds(500));
  loop_.Advance(seconds(9));
  Break();
  EXPECT_GE(Pause(), milliseconds(500)) << "the peer did not accept this one";
}

TEST_F(ReconnectingStreamTest, AcceptsEachStreamOnce) {
  for (int i = 0; i < 10; ++i) {
    Break();
    Pause();
  }
  for (int i = 0; i < 4; ++i) {
    stream_->MarkAccepted();
    loop_.Advance(milliseconds(300));
  }
  Break();
  EXPECT_LE(Pause(), milliseconds(51));
}

TEST_F(ReconnectingStreamTest, StaysClosedUnlessItsOwnerOpensItAgain) {
  on_closed_ = [] {};
  Break();
  loop_.Advance(seconds(10));
  EXPECT_THAT(network_.opened(), SizeIs(1));
  SendRequest();
  stream_->SendFrom([]() -> std::optional<Message> {
    ADD_FAILURE() << "no stream is open";
    return std::nullopt;
  });
  stream_->Finish();
}

TEST_F(ReconnectingStreamTest, CloseEndsTheStreamWithoutACallback) {
  TakeEvents();
  stream_->Close();
  EXPECT_TRUE(peer().gone());
  EXPECT_FALSE(peer().finished().has_value());
  loop_.Advance(seconds(10));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(network_.opened(), SizeIs(1));
}

TEST_F(ReconnectingStreamTest, CloseEndsThePause) {
  Break();
  stream_->Close();
  loop_.Advance(seconds(10));
  EXPECT_THAT(network_.opened(), SizeIs(1));
}

TEST_F(ReconnectingStreamTest, FinishWaitsForThePeer) {
  TakeEvents();
  stream_->Finish();
  EXPECT_TRUE(peer().finished()->ok());
  EXPECT_TRUE(stream_->open());
  peer().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("closed OK"));
}

// --- Old certificates ----------------------------------------------------------------------------

TEST_F(ReconnectingStreamTest, AnOutdatedStreamIsEndedInOrderAndTheNextOneOpenedAtOnce) {
  TakeEvents();
  SayOutdated();
  EXPECT_TRUE(stream_->reopening());
  EXPECT_THAT(network_.opened(), SizeIs(1)) << "the peer may not have read all messages yet";
  peer().Send(proto::ControlReply());
  EndInOrder();
  EXPECT_THAT(TakeEvents(), ElementsAre("reopen", "message", "open"));
  EXPECT_THAT(network_.opened(), SizeIs(2));
  EXPECT_THAT(peer().Take<proto::ControlRequest>(), SizeIs(1)) << "the hello";
  EXPECT_FALSE(stream_->reopening());
  stream_->ReopenIfQuiet();
  EXPECT_FALSE(peer().finished().has_value()) << "this one is not outdated";
}

TEST_F(ReconnectingStreamTest, AnOutdatedStreamStaysOpenUntilItIsQuiet) {
  quiet_ = false;
  SayOutdated();
  SayOutdated();
  EXPECT_FALSE(peer().finished().has_value());
  quiet_ = true;
  stream_->ReopenIfQuiet();
  stream_->ReopenIfQuiet();
  SayOutdated();
  EndInOrder();
  EXPECT_THAT(TakeEvents(), ElementsAre("open", "reopen", "open"));
}

TEST_F(ReconnectingStreamTest, TheNetworkAsksAgainWhetherItIsQuiet) {
  quiet_ = false;
  SayOutdated();
  quiet_ = true;
  SayOutdated();
  EndInOrder();
  EXPECT_THAT(network_.opened(), SizeIs(2));
}

TEST_F(ReconnectingStreamTest, AStreamWithNewCertificatesIsNotReopened) {
  stream_->ReopenIfQuiet();
  EXPECT_FALSE(peer().finished().has_value());
  quiet_ = false;
  SayOutdated();
  Break();
  Pause();
  quiet_ = true;
  stream_->ReopenIfQuiet();
  EXPECT_FALSE(peer().finished().has_value()) << "it has begun with the new ones";
}

TEST_F(ReconnectingStreamTest, AStreamThatBreaksWhileItIsReopenedIsBroken) {
  SayOutdated();
  TakeEvents();
  Break();
  EXPECT_THAT(TakeEvents(), ElementsAre("closed UNAVAILABLE"));
  EXPECT_GE(Pause(), milliseconds(25));
}

TEST_F(ReconnectingStreamTest, CloseEndsTheReopening) {
  SayOutdated();
  TakeEvents();
  stream_->Close();
  EXPECT_FALSE(stream_->reopening());
  peer().Close(absl::OkStatus());
  loop_.Advance(seconds(10));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(network_.opened(), SizeIs(1));
}

TEST_F(ReconnectingStreamTest, ReopeningResetsThePausesOfAStreamThatLasted) {
  for (int i = 0; i < 10; ++i) {
    Break();
    Pause();
  }
  stream_->MarkAccepted();
  loop_.Advance(seconds(1));
  SayOutdated();
  EndInOrder();
  Break();
  EXPECT_LE(Pause(), milliseconds(51));
}

TEST_F(ReconnectingStreamTest, MayBeDestroyedInItsCallback) {
  on_closed_ = [this] {
    stream_->OpenLater();
    stream_.reset();
  };
  Break();
  loop_.Advance(seconds(10));
  EXPECT_THAT(network_.opened(), SizeIs(1));
}

}  // namespace
}  // namespace shoal
