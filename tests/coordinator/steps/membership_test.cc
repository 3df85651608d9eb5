#include "coordinator/steps/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using State = Membership::Record::State;

class MembershipTest : public testing::Test {
 protected:
  explicit MembershipTest(std::set<int> listed = {0, 1, 4}) {
    membership_ = std::make_unique<Membership>(Membership::Options{
        .loop = &loop_,
        .listed = std::move(listed),
        .job_text = "the job",
        .ps_addresses = {"ps-0:1", "ps-1:1"},
        .on_ready =
            [this](Worker& worker, const proto::WorkerReady& ready) {
              worker.ready = true;
              events_.push_back(
                  absl::StrCat("ready ", worker.index, " ", ready.training_examples()));
            },
        .on_report =
            [this](Worker& worker, const proto::WorkerReport& report) {
              events_.push_back(absl::StrCat("report ", worker.index, " ", report.kind_case()));
            },
        .on_gone =
            [this](Worker& worker, const std::string& why) {
              events_.push_back(absl::StrCat("gone ", worker.index, ": ", why));
            },
        .on_reopened =
            [this](const Worker& former, Worker& now) {
              EXPECT_NE(former.key, now.key);
              EXPECT_FALSE(now.ready);
              events_.push_back(absl::StrCat("reopened ", now.index));
            }});
  }

  std::shared_ptr<FarEnd> Connect(const std::string& peer = "10.0.0.7:4711") {
    auto worker = std::make_shared<FarEnd>(&loop_, peer, kWorkMethod);
    worker->set_callbacks(membership_->Accept(worker->MakeStream()));
    return worker;
  }
  struct Hello {
    std::optional<uint32_t> index;
    uint64_t incarnation = 1;
    std::string version = kVersion;
  };
  void SendHello(FarEnd& worker, const Hello& hello) {
    proto::WorkerReport report;
    if (hello.index.has_value()) report.mutable_hello()->set_index(*hello.index);
    report.mutable_hello()->set_version(hello.version);
    report.mutable_hello()->set_incarnation(hello.incarnation);
    report.mutable_hello()->set_host("node");
    report.mutable_hello()->set_pid(12);
    worker.Send(report);
    loop_.RunUntilIdle();
  }
  std::shared_ptr<FarEnd> ConnectAs(const Hello& hello) {
    auto worker = Connect();
    SendHello(*worker, hello);
    return worker;
  }
  // This many workers come and go, one after the other. The first has incarnation 1000.
  void ComeAndGo(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      auto worker = ConnectAs({.incarnation = 1000 + i});
      worker->Close(absl::OkStatus());
      loop_.RunUntilIdle();
    }
  }
  static proto::WorkerOrder OneOrder(FarEnd& worker) {
    const auto orders = worker.Take<proto::WorkerOrder>();
    EXPECT_EQ(orders.size(), 1u);
    return orders.empty() ? proto::WorkerOrder() : orders[0];
  }
  static void ExpectWelcome(FarEnd& worker, uint32_t index) {
    const proto::WorkerOrder order = OneOrder(worker);
    ASSERT_TRUE(order.has_welcome()) << order.ShortDebugString();
    EXPECT_EQ(order.welcome().index(), index);
    EXPECT_EQ(order.welcome().job(), "the job");
    EXPECT_THAT(order.welcome().ps(), ElementsAre("ps-0:1", "ps-1:1"));
  }
  // It was told why, and the stream ends in order, so that this arrives.
  static std::string Rejection(FarEnd& worker, bool final = true) {
    const proto::WorkerOrder order = OneOrder(worker);
    EXPECT_TRUE(order.has_rejected()) << order.ShortDebugString();
    EXPECT_EQ(order.rejected().final(), final);
    EXPECT_TRUE(worker.finished().has_value() && worker.finished()->ok());
    EXPECT_FALSE(worker.gone()) << "what is queued must still be sent";
    return order.rejected().reason();
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  FakeLoop loop_;
  std::vector<std::string> events_;
  std::unique_ptr<Membership> membership_;
};

TEST_F(MembershipTest, TextsOfAWorkerAreCutWhereTheyAreRead) {
  auto worker = Connect();
  proto::WorkerReport report;
  proto::WorkerHello* hello = report.mutable_hello();
  hello->set_version(kVersion);
  hello->set_index(4);
  hello->set_host(std::string(50 << 20, 'h'));
  hello->set_device(std::string(1 << 20, 'd'));
  for (int i = 0; i <= 1 << 14; ++i) hello->add_held_steps(i);
  worker->Send(report);
  loop_.RunUntilIdle();
  ExpectWelcome(*worker, 4);
  EXPECT_LT(membership_->records().at(4).address.size(), 300u);
  EXPECT_LT(membership_->workers().begin()->second->hello.ByteSizeLong(), size_t{100} << 10);
  worker->Close(absl::UnavailableError(std::string(1 << 20, 'w')));
  loop_.RunUntilIdle();
  EXPECT_LT(membership_->records().at(4).detail.size(), 1000u);
}

TEST_F(MembershipTest, AListedWorkerIsWelcomedAndGetsReady) {
  auto worker = ConnectAs({.index = 4});
  ExpectWelcome(*worker, 4);
  EXPECT_EQ(membership_->records().at(4).state, State::kPreparing);
  EXPECT_EQ(membership_->records().at(4).address, "node, pid 12");
  EXPECT_THAT(membership_->Ready(), IsEmpty());

  proto::WorkerReport report;
  report.mutable_ready()->set_training_examples(60000);
  report.mutable_ready()->set_job_fingerprint(JobFingerprint("the job"));
  worker->Send(report);
  worker->Send(report);  // no news
  report.mutable_steps_done();
  worker->Send(report);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("ready 4 60000", "report 4 3"));
  EXPECT_EQ(membership_->Ready().size(), 1u);

  worker->Close(absl::UnavailableError("connection reset"));
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("gone 4: connection reset"));
  EXPECT_EQ(membership_->records().at(4).state, State::kLost);
  EXPECT_EQ(membership_->records().at(4).detail, "connection reset");
  EXPECT_THAT(membership_->workers(), IsEmpty());
}

// It has outlived a coordinator whose job was another one.
TEST_F(MembershipTest, AWorkerOfAnotherJobIsRejectedAndCounted) {
  for (const uint32_t fingerprint : {JobFingerprint("another job"), 0u}) {
    auto worker = ConnectAs({.index = 4});
    ExpectWelcome(*worker, 4);
    proto::WorkerReport report;
    report.mutable_ready()->set_training_examples(60000);
    report.mutable_ready()->set_job_fingerprint(fingerprint);
    worker->Send(report);
    loop_.RunUntilIdle();
    const proto::WorkerOrder order = OneOrder(*worker);
    ASSERT_TRUE(order.has_rejected()) << order.ShortDebugString();
    EXPECT_TRUE(order.rejected().other_job());
    EXPECT_FALSE(order.rejected().final()) << "it is of use again, once it is started anew";
    EXPECT_THAT(order.rejected().reason(),
                AllOf(HasSubstr(ChecksumText(fingerprint)),
                      HasSubstr(ChecksumText(JobFingerprint("the job")))));
    EXPECT_TRUE(worker->finished().has_value() && worker->finished()->ok());
    EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("gone 4"))) << "and was never ready";
    EXPECT_EQ(membership_->records().at(4).state, State::kLost);
  }
  EXPECT_EQ(membership_->of_another_job(), 2u);
}

TEST_F(MembershipTest, AnotherVersionIsRejectedNamingBoth) {
  auto worker = ConnectAs({.index = 0, .version = "9.8.7"});
  EXPECT_THAT(Rejection(*worker),
              AllOf(HasSubstr("9.8.7"), HasSubstr(kVersion), HasSubstr("10.0.0.7:4711")));
  EXPECT_THAT(membership_->workers(), IsEmpty());
  EXPECT_THAT(membership_->records(), IsEmpty());
  EXPECT_THAT(TakeEvents(), IsEmpty());
  // Its end takes the stream along.
  worker->Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_TRUE(worker->gone());
}

TEST_F(MembershipTest, AnIndexThatIsNotListedIsRejectedWithTheList) {
  auto worker = ConnectAs({.index = 2});
  EXPECT_THAT(Rejection(*worker),
              AllOf(HasSubstr("worker 2"), HasSubstr("listed: 0, 1, 4"), HasSubstr("--chief")));
  EXPECT_THAT(Rejection(*ConnectAs({.index = UINT32_MAX})), HasSubstr("worker 4294967295"));
}

class MembershipWithoutListTest : public MembershipTest {
 protected:
  MembershipWithoutListTest() : MembershipTest(std::set<int>()) {}
};

TEST_F(MembershipWithoutListTest, SaysThatNoneIsListed) {
  EXPECT_THAT(Rejection(*ConnectAs({.index = 0})), HasSubstr("listed: none"));
  ExpectWelcome(*ConnectAs({.incarnation = 5}), 0);
  ExpectWelcome(*ConnectAs({.incarnation = 6}), 1);
}

TEST_F(MembershipTest, WorkersThatAreNotListedGetTheNextFreeIndex) {
  auto first = ConnectAs({.incarnation = 100});
  ExpectWelcome(*first, 5);
  ExpectWelcome(*ConnectAs({.incarnation = 101}), 6);
  first->Close(absl::UnavailableError("gone"));
  loop_.RunUntilIdle();
  ExpectWelcome(*ConnectAs({.incarnation = 102}), 7);  // the first may come back
  ExpectWelcome(*ConnectAs({.incarnation = 100}), 5);  // as it does
}

// A listed worker may not be taken for one that was given its index.
TEST_F(MembershipTest, AnIndexOfTheListIsNeverGiven) {
  ConnectAs({.index = 4, .incarnation = 100});
  ExpectWelcome(*ConnectAs({.incarnation = 100}), 5);
}

void SayReopening(FarEnd& worker) {
  proto::WorkerReport report;
  report.mutable_reopening();
  worker.Send(report);
}

TEST_F(MembershipTest, AWorkerThatReopensItsStreamIsNotGone) {
  auto former = ConnectAs({.index = 1, .incarnation = 7});
  former->Take<proto::WorkerOrder>();
  SayReopening(*former);
  former->Close(absl::OkStatus());
  loop_.Advance(std::chrono::seconds(4));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ASSERT_THAT(membership_->workers(), SizeIs(1));
  EXPECT_FALSE(membership_->AnyReady());
  membership_->Broadcast(proto::WorkerOrder());  // lost, as it has no stream
  EXPECT_THAT(Rejection(*ConnectAs({.index = 1, .incarnation = 8}), /*final=*/false),
              HasSubstr("worker 1"));
  ExpectWelcome(*ConnectAs({.index = 1, .incarnation = 7}), 1);
  EXPECT_THAT(TakeEvents(), ElementsAre("reopened 1"));
  EXPECT_THAT(membership_->workers(), SizeIs(1));
  EXPECT_EQ(membership_->records().at(1).restarts, 0u);
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(MembershipTest, AWorkerThatDoesNotComeBackIsGoneSoon) {
  auto closed = ConnectAs({.index = 0, .incarnation = 7});
  auto open = ConnectAs({.index = 1, .incarnation = 8});
  SayReopening(*closed);
  closed->Close(absl::OkStatus());
  SayReopening(*open);
  loop_.Advance(std::chrono::seconds(6));
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("gone 0"), HasSubstr("gone 1")));
  EXPECT_TRUE(open->gone());
  EXPECT_THAT(membership_->workers(), IsEmpty());
}

TEST_F(MembershipTest, AWorkerWithoutAStreamLearnsTheEndWhenItIsBack) {
  auto former = ConnectAs({.index = 0, .incarnation = 7});
  for (const uint32_t index : {1, 4}) ConnectAs({.index = index, .incarnation = index});
  SayReopening(*former);
  former->Close(absl::OkStatus());
  loop_.RunUntilIdle();
  membership_->EndJob("");
  EXPECT_FALSE(membership_->AllNotified());
  auto back = ConnectAs({.index = 0, .incarnation = 7});
  EXPECT_TRUE(OneOrder(*back).has_job_done());
  EXPECT_TRUE(membership_->AllNotified());
}

TEST_F(MembershipTest, AnIndexThatIsNotOfTheCertificateIsRejected) {
  auto owner = Connect();
  owner->set_own_index(4);
  SendHello(*owner, {.index = 4});
  ExpectWelcome(*owner, 4);
  auto thief = Connect();
  thief->set_own_index(3);
  SendHello(*thief, {.index = 4, .incarnation = 2});
  EXPECT_EQ(Rejection(*thief), "claimed");
  EXPECT_TRUE(owner->open());
  EXPECT_FALSE(owner->finished().has_value());
}

TEST_F(MembershipTest, TheSameProcessReplacesItsStaleStream) {
  auto stale = ConnectAs({.index = 1, .incarnation = 7});
  stale->Take<proto::WorkerOrder>();
  auto fresh = ConnectAs({.index = 1, .incarnation = 7});
  ExpectWelcome(*fresh, 1);
  EXPECT_TRUE(stale->gone());
  EXPECT_THAT(stale->Take<proto::WorkerOrder>(), IsEmpty())
      << "it is not rejected: it is the same process";
  EXPECT_THAT(TakeEvents(), ElementsAre("gone 1: it has opened a new stream"));
  EXPECT_EQ(membership_->workers().size(), 1u);
  EXPECT_EQ(membership_->records().at(1).state, State::kPreparing);
}

// Nothing is asked of it but its stream: a worker that has no steps says nothing.
TEST_F(MembershipTest, AClaimDoesNotReplaceAWorkerThatIsAlive) {
  auto worker = ConnectAs({.index = 1, .incarnation = 7});
  worker->Take<proto::WorkerOrder>();
  for (int i = 0; i < 5; ++i) {
    loop_.Advance(std::chrono::minutes(10));
    EXPECT_THAT(Rejection(*ConnectAs({.index = 1, .incarnation = 8}), /*final=*/false),
                AllOf(HasSubstr("there is a worker 1 already"), HasSubstr("node, pid 12"),
                      HasSubstr("10.0.0.7:4711"), HasSubstr("another index")));
    EXPECT_TRUE(worker->open());
    EXPECT_EQ(membership_->records().at(1).restarts, 0u);
  }
  // Once it is gone, another one comes at once.
  worker->Close(absl::UnavailableError("killed"));
  loop_.RunUntilIdle();
  ExpectWelcome(*ConnectAs({.index = 1, .incarnation = 8}), 1);
}

TEST_F(MembershipTest, ReportsOfARejectedWorkerAreIgnored) {
  auto worker = ConnectAs({.index = 1, .incarnation = 7});
  auto other = ConnectAs({.index = 1, .incarnation = 8});
  Rejection(*other, /*final=*/false);
  proto::WorkerReport report;
  report.mutable_ready();
  other->Send(report);
  other->Close(absl::OkStatus());  // nor does the end of its stream
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_EQ(membership_->workers().size(), 1u);
  EXPECT_EQ(membership_->records().at(1).state, State::kPreparing);
}

// Whichever of the two comes first when a stream has broken: the job keeps its worker.
TEST_F(MembershipTest, NobodyIsPutOutForGoodByOneThatTookItsPlace) {
  auto worker = ConnectAs({.index = 1, .incarnation = 7});
  worker->Close(absl::UnavailableError("connection reset, or asleep"));
  auto other = ConnectAs({.index = 1, .incarnation = 8});
  ExpectWelcome(*other, 1);
  EXPECT_EQ(membership_->records().at(1).restarts, 1u);
  EXPECT_THAT(Rejection(*ConnectAs({.index = 1, .incarnation = 7}), /*final=*/false),
              HasSubstr("there is a worker 1 already"));
  EXPECT_TRUE(other->open());
  EXPECT_EQ(membership_->workers().size(), 1u);
  other->Close(absl::UnavailableError("ended"));
  loop_.RunUntilIdle();
  ExpectWelcome(*ConnectAs({.index = 1, .incarnation = 7}), 1);
}

TEST_F(MembershipTest, ClaimsOfAnIndexThatSomebodyHasAreSaidOnceAMinute) {
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  ConnectAs({.index = 1, .incarnation = 7});
  log.clear();
  for (int i = 0; i < 180; ++i) {
    Rejection(*ConnectAs({.index = 1, .incarnation = 8}), /*final=*/false);
    loop_.Advance(std::chrono::seconds(1));
  }
  SendLogTo({});
  EXPECT_THAT(log, AllOf(SizeIs(3), Each(HasSubstr("there is a worker 1 already"))));
}

TEST_F(MembershipTest, TheFirstMessageMustBeAHello) {
  auto garbage = Connect();
  garbage->SendGarbage();
  loop_.RunUntilIdle();
  EXPECT_THAT(Rejection(*garbage), HasSubstr("WorkerReport"));

  auto early = Connect();
  proto::WorkerReport report;
  report.mutable_ready();
  early->Send(report);
  loop_.RunUntilIdle();
  EXPECT_THAT(Rejection(*early), HasSubstr("must be its hello"));

  auto empty = Connect();
  empty->Send(proto::WorkerReport());
  loop_.RunUntilIdle();
  EXPECT_THAT(Rejection(*empty), HasSubstr("must be its hello"));
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(MembershipTest, GarbageAndASecondHelloEndTheStream) {
  auto worker = ConnectAs({.index = 0});
  worker->Take<proto::WorkerOrder>();
  SendHello(*worker, {.index = 1});
  EXPECT_THAT(Rejection(*worker), HasSubstr("hello twice"));
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("gone 0: ")));

  auto other = ConnectAs({.index = 1});
  other->Take<proto::WorkerOrder>();
  other->SendGarbage();
  loop_.RunUntilIdle();
  EXPECT_THAT(Rejection(*other), HasSubstr("WorkerReport"));
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("gone 1: ")));
}

TEST_F(MembershipTest, MoreStepsThanAWorkerHoldsAreNotRead) {
  constexpr int kTooMany = (1 << 14) + 2;
  auto holder = Connect();
  proto::WorkerReport report;
  report.mutable_hello()->set_version(kVersion);
  report.mutable_hello()->set_index(0);
  for (int i = 0; i < kTooMany; ++i) report.mutable_hello()->add_held_steps(i);
  holder->Send(report);
  loop_.RunUntilIdle();
  EXPECT_THAT(Rejection(*holder), HasSubstr("16386"));

  auto reporter = ConnectAs({.index = 1});
  reporter->Take<proto::WorkerOrder>();
  report.Clear();
  for (int i = 0; i < kTooMany; ++i) report.mutable_steps_done()->add_steps();
  reporter->Send(report);
  loop_.RunUntilIdle();
  EXPECT_THAT(Rejection(*reporter), HasSubstr("16386"));
}

TEST_F(MembershipTest, AStreamThatEndsBeforeItsHelloLeavesNoTrace) {
  auto worker = Connect();
  worker->Close(absl::UnavailableError("reset"));
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(membership_->records(), IsEmpty());
  EXPECT_TRUE(worker->gone());
}

TEST_F(MembershipTest, AStreamIsAWorkerFromItsHelloOn) {
  auto worker = Connect();
  EXPECT_THAT(membership_->workers(), IsEmpty());
  SendHello(*worker, {.index = 1});
  ExpectWelcome(*worker, 1);
  ASSERT_THAT(membership_->workers(), SizeIs(1));
  EXPECT_EQ(membership_->workers().begin()->second->index, 1);
}

TEST_F(MembershipTest, ARecordThatSaysLeftStaysSo) {
  auto worker = ConnectAs({.index = 0});
  membership_->record(*membership_->workers().begin()->second) = {.state = State::kLeft,
                                                                  .detail = "SIGTERM"};
  worker->Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_EQ(membership_->records().at(0).state, State::kLeft);
  EXPECT_EQ(membership_->records().at(0).detail, "SIGTERM");
}

TEST_F(MembershipTest, TheOldestOfManyThatCameAndWentAreForgotten) {
  ConnectAs({.index = 0})->Close(absl::OkStatus());  // listed
  auto stays = ConnectAs({.incarnation = 7});
  ComeAndGo(1100);
  EXPECT_EQ(membership_->records().size(), 1002u);
  EXPECT_TRUE(membership_->records().contains(0));
  EXPECT_EQ(membership_->records().at(5).state, State::kPreparing);
}

TEST_F(MembershipTest, ALeavingWorkerKeepsItsSeatWhileConnected) {
  auto leaving = ConnectAs({.incarnation = 7});
  ExpectWelcome(*leaving, 5);
  membership_->record(*membership_->workers().begin()->second).state = State::kLeft;
  ComeAndGo(1100);
  EXPECT_EQ(membership_->records().size(), 1001u);
  EXPECT_EQ(membership_->records().at(5).state, State::kLeft);
  ExpectWelcome(*ConnectAs({.incarnation = 7}), 5);
  EXPECT_TRUE(leaving->gone());
}

TEST_F(MembershipTest, AWorkerThatComesBackKeepsItsRecordAmongMany) {
  auto worker = ConnectAs({.incarnation = 7});
  membership_->record(*membership_->workers().begin()->second).steps_done = 3;
  ComeAndGo(1000);
  worker->Close(absl::UnavailableError("connection reset"));
  loop_.RunUntilIdle();
  EXPECT_EQ(membership_->records().size(), 1000u);
  ExpectWelcome(*ConnectAs({.incarnation = 7}), 5);
  EXPECT_EQ(membership_->records().at(5).state, State::kPreparing);
  EXPECT_EQ(membership_->records().at(5).steps_done, 3u);
}

TEST_F(MembershipTest, AReplacedStreamKeepsItsRecordAmongMany) {
  auto stale = ConnectAs({.incarnation = 7});
  membership_->record(*membership_->workers().begin()->second).steps_done = 3;
  ComeAndGo(1000);
  ExpectWelcome(*ConnectAs({.incarnation = 7}), 5);
  EXPECT_TRUE(stale->gone());
  EXPECT_EQ(membership_->records().at(5).state, State::kPreparing);
  EXPECT_EQ(membership_->records().at(5).steps_done, 3u);
}

TEST_F(MembershipTest, AForgottenWorkerComesBackAsANewOne) {
  ComeAndGo(1001);
  EXPECT_FALSE(membership_->records().contains(5));
  auto newcomer = ConnectAs({.incarnation = 7});
  ExpectWelcome(*newcomer, 5);
  ExpectWelcome(*ConnectAs({.incarnation = 1000}), 1006);
  EXPECT_TRUE(newcomer->open());
  EXPECT_EQ(membership_->records().at(5).restarts, 0u);
  EXPECT_EQ(membership_->records().at(1006).restarts, 0u);
}

TEST_F(MembershipTest, BroadcastsReachThoseThatAreKnown) {
  auto known = ConnectAs({.index = 0});
  auto unknown = Connect();
  known->Take<proto::WorkerOrder>();
  proto::WorkerOrder order;
  order.mutable_job_done();
  membership_->Broadcast(order);
  EXPECT_TRUE(OneOrder(*known).has_job_done());
  EXPECT_THAT(unknown->Take<proto::WorkerOrder>(), IsEmpty());
}

}  // namespace
}  // namespace shoal
