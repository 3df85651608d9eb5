#include "worker/session/coordinator_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/log/logging.h"
#include "proto/coordinator.pb.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorLinkTest : public testing::Test {
 protected:
  CoordinatorLinkTest() {
    SendLogTo([this](const std::string& message, const LogFields&) { log_.push_back(message); });
    link_ = std::make_unique<CoordinatorLink>(CoordinatorLink::Options{
        .loop = &loop_,
        .network = &network_,
        .coordinator = "chief:1",
        .method = kWorkMethod,
        .seed = 99,
        .timeout = minutes(10),
        .on_open = [this] { link_->Send(proto::WorkerReport()); },
        .on_message = [this](const Message&) { events_.push_back("message"); },
        .on_closed =
            [this] {
              events_.push_back("closed");
              retried_ = link_->Retry();
            },
        .is_quiet = [this] { return quiet_; },
        .on_reopen = [this] { events_.push_back("reopen"); }});
    link_->Start();
    TakeLog();
  }
  ~CoordinatorLinkTest() override { SendLogTo({}); }

  FarEnd& coordinator() { return network_.Newest("chief:1"); }
  void Break() {
    coordinator().Close(absl::UnavailableError("connection reset"));
    loop_.RunUntilIdle();
  }
  void SayOutdated() {
    coordinator().SayOutdated();
    loop_.RunUntilIdle();
  }
  absl::Status Reject(bool final = false, bool other_job = false) {
    proto::Rejected rejected;
    rejected.set_reason("there is a worker 4 already");
    rejected.set_final(final);
    rejected.set_other_job(other_job);
    return link_->Rejected(rejected);
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }
  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }

  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<std::string> events_, log_;
  absl::Status retried_;
  bool quiet_ = true;
  std::unique_ptr<CoordinatorLink> link_;
};

TEST_F(CoordinatorLinkTest, SaysHelloOnEachStream) {
  EXPECT_EQ(coordinator().method(), kWorkMethod);
  EXPECT_THAT(coordinator().Take<proto::WorkerReport>(), SizeIs(1));
  link_->Welcomed();
  Break();
  loop_.Advance(seconds(1));
  EXPECT_EQ(network_.CountOf("chief:1"), 2);
  EXPECT_THAT(coordinator().Take<proto::WorkerReport>(), SizeIs(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("closed"));
}

TEST_F(CoordinatorLinkTest, IsWelcomedUntilTheStreamBreaks) {
  EXPECT_FALSE(link_->welcomed());
  link_->Welcomed();
  EXPECT_TRUE(link_->welcomed());
  EXPECT_EQ(SampleValue(*link_, "shoal_worker_connected"), 1);
  Break();
  EXPECT_FALSE(link_->welcomed());
  loop_.Advance(milliseconds(1500));
  EXPECT_EQ(SampleValue(*link_, "shoal_worker_connected"), 0);
  EXPECT_EQ(SampleValue(*link_, "shoal_worker_waiting_seconds", {"chief", "0", "no connection"}),
            1.5);
}

TEST_F(CoordinatorLinkTest, LogsALossAndAReturnOnce) {
  link_->Welcomed();
  EXPECT_THAT(TakeLog(), IsEmpty());
  Break();
  loop_.Advance(seconds(1));
  Break();
  loop_.Advance(seconds(1));
  link_->Welcomed();
  EXPECT_THAT(TakeLog(), ElementsAre(HasSubstr("lost"), HasSubstr("back")));
}

TEST_F(CoordinatorLinkTest, LogsALongWaitWithItsReason) {
  loop_.Advance(milliseconds(4999));
  EXPECT_THAT(TakeLog(), IsEmpty());
  loop_.Advance(milliseconds(1));
  EXPECT_THAT(TakeLog(), ElementsAre(HasSubstr("chief:1 for 5 s")));
  Break();
  loop_.Advance(seconds(5));
  EXPECT_THAT(TakeLog(), ElementsAre(HasSubstr("for 10 s: connection reset")));
  link_->Welcomed();
  loop_.Advance(minutes(1));
  EXPECT_THAT(TakeLog(), IsEmpty());
}

TEST_F(CoordinatorLinkTest, ARejectionForNowIsLoggedOnceAndTriedAgain) {
  link_->Welcomed();
  loop_.Advance(seconds(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Reject().ok());
    EXPECT_FALSE(link_->welcomed());
    coordinator().Close(absl::OkStatus());
    loop_.Advance(seconds(1));
  }
  EXPECT_EQ(network_.CountOf("chief:1"), 4);
  EXPECT_THAT(TakeLog(), ElementsAre(HasSubstr("there is a worker 4 already")));
  loop_.Advance(seconds(1));
  EXPECT_THAT(TakeLog(), ElementsAre(HasSubstr("for 4 s: there is a worker 4 already")));
}

TEST_F(CoordinatorLinkTest, TellsAFinalRejectionFromAnotherJob) {
  EXPECT_TRUE(absl::IsFailedPrecondition(Reject(/*final=*/true)));
  EXPECT_TRUE(absl::IsUnavailable(Reject(/*final=*/false, /*other_job=*/true)));
}

TEST_F(CoordinatorLinkTest, RetryFailsAfterTheTimeout) {
  loop_.Advance(minutes(10) - milliseconds(1));
  Break();
  EXPECT_TRUE(retried_.ok());
  loop_.Advance(seconds(1));
  Break();
  EXPECT_TRUE(absl::IsUnavailable(retried_)) << retried_;
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.CountOf("chief:1"), 2);
}

TEST_F(CoordinatorLinkTest, AMessageOfAnotherTypeDoesNotParse) {
  proto::WorkerOrder order;
  EXPECT_TRUE(link_->Parse(MakeMessage(proto::WorkerOrder()), &order).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(link_->Parse({.fields = "\x0f\xff garbage"}, &order)));
}

TEST_F(CoordinatorLinkTest, LeavesOnceTheCoordinatorHasClosedTheStream) {
  int left = 0;
  link_->Leave([&left] { ++left; });
  EXPECT_TRUE(link_->over());
  EXPECT_TRUE(coordinator().finished()->ok());
  coordinator().Send(proto::WorkerOrder());
  loop_.RunUntilIdle();
  EXPECT_EQ(left, 0);
  coordinator().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_EQ(left, 1);
  loop_.Advance(minutes(1));
  EXPECT_EQ(left, 1);
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "it is over";
  EXPECT_EQ(network_.CountOf("chief:1"), 1);
}

TEST_F(CoordinatorLinkTest, LeavesWithinASecondOrWhenItIsStopped) {
  for (const bool stop : {false, true}) {
    int left = 0;
    CoordinatorLink link({.loop = &loop_,
                          .network = &network_,
                          .coordinator = "chief:2",
                          .method = kWorkMethod,
                          .on_message = [](const Message&) {},
                          .on_closed = [] {}});
    link.Start();
    link.Leave([&left] { ++left; });
    if (stop) {
      link.StopWaiting();
    } else {
      loop_.Advance(seconds(1));
    }
    EXPECT_EQ(left, 1) << stop;
    loop_.Advance(seconds(2));
    EXPECT_EQ(left, 1) << stop;
  }
}

TEST_F(CoordinatorLinkTest, LeavesAtOnceWithoutAStream) {
  Break();
  int left = 0;
  link_->Leave([&left] { ++left; });
  EXPECT_EQ(left, 1);
  loop_.Advance(minutes(1));
  EXPECT_EQ(network_.CountOf("chief:1"), 1);
}

TEST_F(CoordinatorLinkTest, TheEndStopsMessagesRetriesAndLogLines) {
  link_->End();
  EXPECT_TRUE(coordinator().open()) << "queued reports still leave";
  coordinator().Send(proto::WorkerOrder());
  Break();
  loop_.Advance(minutes(1));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(TakeLog(), IsEmpty());
  EXPECT_EQ(network_.CountOf("chief:1"), 1);
}

TEST_F(CoordinatorLinkTest, AReopenedStreamIsNoLoss) {
  link_->Welcomed();
  quiet_ = false;
  SayOutdated();
  EXPECT_TRUE(link_->welcomed());
  quiet_ = true;
  SayOutdated();
  EXPECT_THAT(TakeEvents(), ElementsAre("reopen"));
  EXPECT_FALSE(link_->welcomed()) << "it can send nothing";
  EXPECT_TRUE(coordinator().finished().has_value());
  coordinator().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_EQ(network_.CountOf("chief:1"), 2) << "without a pause";
  EXPECT_THAT(coordinator().Take<proto::WorkerReport>(), SizeIs(1));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  link_->Welcomed();
  for (const std::string& line : TakeLog()) {
    EXPECT_THAT(line, testing::Not(testing::AnyOf(HasSubstr("lost"), HasSubstr("back"))));
  }
}

TEST_F(CoordinatorLinkTest, AStreamIsNotReopenedBeforeTheWelcome) {
  SayOutdated();
  EXPECT_FALSE(coordinator().finished().has_value());
}

TEST_F(CoordinatorLinkTest, ALinkThatIsOverOpensNoOtherStream) {
  link_->Welcomed();
  SayOutdated();
  bool left = false;
  link_->Leave([&left] { left = true; });
  EXPECT_TRUE(left) << "nothing more can be said on this stream";
  coordinator().Close(absl::OkStatus());
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.CountOf("chief:1"), 1);
}

}  // namespace
}  // namespace shoal
