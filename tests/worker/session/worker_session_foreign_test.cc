// A coordinator that says what none says: nothing of it may crash a worker, fill its memory, or
// make it do what is not of the job.
#include <random>

#include "tests/worker/session/worker_session_fixture.h"
#include "worker/session/worker_session.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ForeignCoordinatorTest : public WorkerSessionTest {
 protected:
  // Steps that it says it holds, to a coordinator that comes after.
  int HeldSteps() {
    LoseCoordinator();
    Reconnect();
    const auto reports = TakeReports();
    EXPECT_EQ(reports.size(), 1u);
    return reports[0].hello().held_steps_size();
  }
};

TEST_F(ForeignCoordinatorTest, OrdersOfNoTimelineAreDropped) {
  const auto order_all = [this] {
    timeline_ = 0;
    Lease(7, 2);
    OrderEvaluation(13, 0);
    Open(0);
    Lease(7, 2);
    ServePs();
    EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  };
  order_all();
  Welcome();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prepare the job 2"));
  order_all();
  computer_.FinishPrepare();
  order_all();
  Open(kSessionTimeline);
  ServePs();
  computer_.TakeCalls();
  order_all();
  timeline_ = kSessionTimeline;
  Lease(7, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prefetch 7 1", "train 7")) << "it lives on";
}

TEST_F(ForeignCoordinatorTest, LeasesBeyondTheJobAreDropped) {
  GetReady();
  Lease(7, 0);
  Lease(kTotalSteps, 1);
  Lease(kTotalSteps - 1, 2);
  Lease(UINT64_MAX, 1);
  Lease(UINT64_MAX - 1, 3);
  Lease(2, UINT64_MAX);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  EXPECT_EQ(HeldSteps(), 0);
}

TEST_F(ForeignCoordinatorTest, LeasesAreBoundedInAll) {
  StartStep(0);
  for (int i = 0; i < 300; ++i) Lease(1, kTotalSteps - 1);
  EXPECT_LE(HeldSteps(), (1 << 14) + 1);
  EXPECT_LE(computer_.TakeCalls().size(), 17u);
}

TEST_F(ForeignCoordinatorTest, EvaluatesNothingButTheTestSet) {
  held_cut_ = 13;
  GetReady();
  OrderEvaluation(13, computer_.test_batches);
  OrderEvaluation(13, UINT64_MAX);
  OrderEvaluation(0, 0);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  OrderEvaluation(13, 4);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 4"));
}

TEST_F(ForeignCoordinatorTest, WithoutATestSetThereIsNothingToEvaluate) {
  computer_.test_batches = 0;
  held_cut_ = 13;
  GetReady();
  OrderEvaluation(13, 0);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  EXPECT_EQ(pulls_, 0u);
}

TEST_F(ForeignCoordinatorTest, TheIndexMustBeItsOwn) {
  Welcome(/*index=*/5);
  ExpectOver(WorkerSession::End::kFailed, "index 5");
}

TEST_F(ForeignCoordinatorTest, ThereMustBePs) {
  Welcome(4, {});
  ExpectOver(WorkerSession::End::kFailed, " 0 ps");
}

TEST_F(ForeignCoordinatorTest, ThereAreNotThatManyPs) {
  Welcome(4, std::vector<std::string>(100001, "ps:1"));
  ExpectOver(WorkerSession::End::kFailed, " 100001 ps");
}

TEST_F(ForeignCoordinatorTest, NoAddressIsThatLong) {
  Welcome(4, {"ps-0:1", std::string(600, 'x')});
  ExpectOver(WorkerSession::End::kFailed, " 600 bytes");
}

TEST_F(ForeignCoordinatorTest, ReasonsAreCut) {
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason(std::string(1 << 20, 'x'));
  order.mutable_rejected()->set_final(true);
  Order(order);
  ExpectOver(WorkerSession::End::kFailed, ": xxx");
  EXPECT_LT(why_.size(), 5000u);
}

TEST_F(ForeignCoordinatorTest, OneThatWelcomesAndBreaksIsNotTriedAtOnceForEver) {
  for (int i = 0; i < 10; ++i) {
    Welcome();
    LoseCoordinator();
    Reconnect();
  }
  Welcome();
  LoseCoordinator();
  const int before = network_.CountOf("chief:1");
  loop_.Advance(std::chrono::milliseconds(400));
  EXPECT_EQ(network_.CountOf("chief:1"), before);
}

// Orders of any content in any order, seeded: whatever comes, it can work on for a coordinator.
class ForeignOrdersTest : public WorkerSessionTest, public testing::WithParamInterface<int> {
 protected:
  uint64_t Number() {
    const uint64_t numbers[] = {0,          1,         2, 13, kSessionTimeline, kTotalSteps - 1,
                                UINT32_MAX, UINT64_MAX};
    return numbers[random_() % std::size(numbers)];
  }
  proto::WorkerOrder RandomOrder() {
    proto::WorkerOrder order;
    const uint64_t timeline = random_() % 4 == 0 ? Number() : timeline_;
    switch (random_() % 5) {
      case 0:
        order.mutable_timeline_opened()->set_timeline(timeline);
        break;
      case 1:
        order.mutable_lease()->set_timeline(timeline);
        order.mutable_lease()->set_first(Number());
        order.mutable_lease()->set_count(Number());
        order.mutable_lease()->set_timeout_ms(Number());
        break;
      case 2:
        order.mutable_evaluate()->set_timeline(timeline);
        order.mutable_evaluate()->set_cut_step(Number());
        order.mutable_evaluate()->set_batch(Number());
        break;
      case 3:
        order.mutable_rejected()->set_reason("no");
        break;
      case 4:
        order.mutable_welcome()->set_index(4);
        order.mutable_welcome()->set_job("the job");
        order.mutable_welcome()->add_ps("ps-0:1");
        order.mutable_welcome()->add_ps("ps-1:1");
        break;
    }
    return order;
  }

  std::mt19937_64 random_{static_cast<uint64_t>(GetParam())};
};

TEST_P(ForeignOrdersTest, NeverStopIt) {
  bool prepared = false;
  for (int i = 0; i < 400; ++i) {
    Order(RandomOrder());
    ASSERT_FALSE(end_.has_value()) << why_;
    for (const std::string& call : computer_.TakeCalls()) {
      if (call.starts_with("prepare")) {
        computer_.FinishPrepare();
        prepared = true;
      }
    }
    held_cut_ = Number();
    if (random_() % 2 == 0) ServePs();
    if (computer_.busy() && random_() % 2 == 0) {
      computer_.FinishChunks();
      computer_.Finish();
    }
    if (random_() % 20 == 0) {
      LoseCoordinator();
      Reconnect();
    }
    coordinator().Take<proto::WorkerReport>();
  }
  ASSERT_TRUE(prepared);
  if (computer_.busy()) computer_.Finish();
  LoseCoordinator();
  Reconnect();
  Welcome();
  Open(kSessionTimeline + 5);
  ServePs();
  Lease(3, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), testing::Contains("train 3"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ForeignOrdersTest, testing::Range(0, 20));

}  // namespace
}  // namespace shoal
