#include "coordinator/takeover/ps_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PsLinkTest : public testing::Test {
 protected:
  PsLinkTest() {
    link_ = std::make_unique<PsLink>(PsLink::Options{
        .loop = &loop_,
        .network = &network_,
        .index = 3,
        .address = "ps-3:1",
        .seed = 5,
        .limits = {{.kind = proto::ControlReply::kWrittenFieldNumber,
                    .field = proto::Written::kRangesFieldNumber,
                    .max = 2}},
        .on_hello =
            [this](int ps, const proto::ServerHello& hello) {
              events_.push_back(absl::StrCat("hello ", ps, " ", hello.incarnation()));
              if (on_hello_ != nullptr) on_hello_();
            },
        .on_reply =
            [this](int ps, const proto::ControlReply& reply) {
              events_.push_back(absl::StrCat("reply ", ps, " ", reply.kind_case()));
            },
        .on_lost =
            [this](int ps, const absl::Status& status) {
              events_.push_back(absl::StrCat("lost ", ps, " ", std::string(status.message())));
            }});
  }

  FarEnd& ps() { return network_.Newest("ps-3:1"); }
  void SendHello(uint64_t incarnation = 7) {
    proto::ControlReply reply;
    reply.mutable_hello()->set_incarnation(incarnation);
    ps().Send(reply);
    loop_.RunUntilIdle();
  }
  void Break(const std::string& why = "broken") {
    ps().Close(absl::UnavailableError(why));
    loop_.RunUntilIdle();
  }
  // Time until the next stream is opened.
  Time Pause() {
    const size_t before = network_.opened().size();
    const Time begin = loop_.Now();
    while (network_.opened().size() == before && loop_.Now() - begin < seconds(10)) {
      loop_.Advance(milliseconds(1));
    }
    return loop_.Now() - begin;
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<std::string> events_;
  std::function<void()> on_hello_;
  std::unique_ptr<PsLink> link_;
};

TEST_F(PsLinkTest, IsConnectedFromTheHelloOn) {
  EXPECT_EQ(ps().method(), kControlMethod);
  EXPECT_FALSE(link_->connected());
  proto::ControlRequest request;
  request.mutable_stop();
  link_->Send(request);
  EXPECT_THAT(ps().Take<proto::ControlRequest>(), IsEmpty()) << "nobody is there yet";
  proto::ControlReply early;
  early.mutable_loaded();
  ps().Send(early);  // before its hello: of no stream that can be trusted
  loop_.Advance(seconds(2));
  SendHello();
  EXPECT_TRUE(link_->connected());
  EXPECT_EQ(link_->since(), loop_.Now());
  EXPECT_THAT(TakeEvents(), ElementsAre("hello 3 7"));
  link_->Send(request);
  EXPECT_EQ(ps().Take<proto::ControlRequest>().size(), 1u);
  ps().Send(early);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("reply 3 3"));
}

TEST_F(PsLinkTest, ReconnectsWithGrowingPauses) {
  std::vector<Time> pauses;
  for (int i = 0; i < 10; ++i) {
    Break("refused");
    EXPECT_EQ(link_->last_error(), "refused");
    pauses.push_back(Pause());
  }
  for (int i = 0; i < 10; ++i) {
    const Time max = std::min<Time>(milliseconds(50) * (1 << i), seconds(1));
    EXPECT_LE(pauses[i], max + milliseconds(1)) << i;
    EXPECT_GE(pauses[i], max / 2) << i;
  }
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "it was never there, so it was not lost";
  EXPECT_EQ(link_->since(), std::chrono::seconds(1000)) << "not connected since the start";
  // After success, short pauses again.
  SendHello();
  EXPECT_EQ(link_->last_error(), "");
  loop_.Advance(seconds(1));
  Break("reset");
  EXPECT_THAT(TakeEvents(), ElementsAre("hello 3 7", "lost 3 reset"));
  EXPECT_FALSE(link_->connected());
  EXPECT_EQ(link_->since(), loop_.Now());
  EXPECT_LE(Pause(), milliseconds(51));
}

TEST_F(PsLinkTest, NamesALookupForAsLongAsItTakes) {
  network_.looked_up = {"ps-3:1"};
  EXPECT_EQ(link_->last_error(), "looking up the name");
  SendHello();
  EXPECT_EQ(link_->last_error(), "") << "another stream looks it up";
  Break("reset");
  EXPECT_EQ(link_->last_error(), "looking up the name");
  network_.looked_up = {};
  EXPECT_EQ(link_->last_error(), "reset");
}

TEST_F(PsLinkTest, APeerThatSpeaksAnotherLanguageIsDroppedAndTriedAgain) {
  SendHello();
  FarEnd& before = ps();
  before.SendGarbage();
  loop_.RunUntilIdle();
  EXPECT_TRUE(before.gone());
  EXPECT_THAT(TakeEvents(), ElementsAre("hello 3 7", HasSubstr(" shoal.proto.ControlReply")));
  EXPECT_LE(Pause(), milliseconds(51));
  SendHello(8);
  EXPECT_TRUE(link_->connected());
}

TEST_F(PsLinkTest, MoreElementsThanAPsHasEndTheStream) {
  SendHello();
  TakeEvents();
  proto::ControlReply reply;
  for (int i = 0; i < 2; ++i) reply.mutable_written()->add_ranges();
  ps().Send(reply);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre(absl::StrCat("reply 3 ", reply.kind_case())));
  reply.mutable_written()->add_ranges();
  FarEnd& before = ps();
  before.Send(reply);
  loop_.RunUntilIdle();
  EXPECT_TRUE(before.gone());
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("lost 3")));
}

TEST_F(PsLinkTest, APeerThatSaysHelloAndBreaksIsNotTriedAtOnceForEver) {
  for (int i = 0; i < 10; ++i) {
    SendHello();
    Break("refused");
    Pause();
  }
  SendHello();
  Break("refused");
  EXPECT_GE(Pause(), milliseconds(500));
}

TEST_F(PsLinkTest, ASecondHelloOnAStreamEndsIt) {
  SendHello(7);
  FarEnd& before = ps();
  SendHello(8);
  EXPECT_TRUE(before.gone());
  EXPECT_THAT(TakeEvents(), ElementsAre("hello 3 7", HasSubstr("lost 3 ps-3:1")));
}

TEST_F(PsLinkTest, WhyItEndedIsCut) {
  SendHello();
  Break(std::string(1 << 20, 'x'));
  EXPECT_LT(link_->last_error().size(), 5000u);
}

TEST_F(PsLinkTest, NothingHappensAfterClose) {
  SendHello();
  TakeEvents();
  FarEnd& stream = ps();
  link_->Close();
  EXPECT_TRUE(stream.gone());
  EXPECT_FALSE(link_->connected());
  link_->Send(proto::ControlRequest());
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), 1u);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsLinkTest, CloseEndsThePauseToo) {
  Break();
  link_->Close();
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), 1u);
}

TEST_F(PsLinkTest, MayBeClosedFromItsOwnCallback) {
  on_hello_ = [this] { link_->Close(); };
  SendHello();
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), 1u);
  EXPECT_THAT(TakeEvents(), ElementsAre("hello 3 7"));
}

TEST_F(PsLinkTest, AnOutdatedStreamIsReopenedAndNotLost) {
  ps().SayOutdated();
  loop_.RunUntilIdle();
  EXPECT_FALSE(ps().finished().has_value()) << "not before the hello";
  SendHello();
  TakeEvents();
  ps().SayOutdated();
  loop_.RunUntilIdle();
  EXPECT_TRUE(ps().finished().has_value());
  EXPECT_FALSE(link_->connected());
  ps().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_EQ(network_.CountOf("ps-3:1"), 2) << "without a pause";
  EXPECT_THAT(TakeEvents(), IsEmpty());
  SendHello();
  EXPECT_THAT(TakeEvents(), ElementsAre("hello 3 7"));
  EXPECT_TRUE(link_->connected());
}

}  // namespace
}  // namespace shoal
