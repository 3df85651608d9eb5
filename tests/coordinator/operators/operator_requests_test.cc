#include "coordinator/operators/operator_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/steps/joined_workers.h"

namespace shoal {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class OperatorRequestsTest : public testing::Test {
 protected:
  OperatorRequestsTest() {
    workers_.on_gone = [this](Worker& worker, const std::string& why) {
      requests_.OnWorkerGone(worker, why);
    };
  }

  std::shared_ptr<FarEnd> Ask(const char* method, const google::protobuf::MessageLite& request) {
    auto far = std::make_shared<FarEnd>(&loop_, "operator", method);
    auto callbacks = requests_.Accept(method, far->MakeStream());
    EXPECT_TRUE(callbacks.ok()) << callbacks.status();
    far->set_callbacks(*std::move(callbacks));
    far->Send(request);
    loop_.RunUntilIdle();
    return far;
  }
  std::shared_ptr<FarEnd> Drain(const std::string& type, uint32_t index) {
    proto::DrainRequest request;
    request.set_type(type);
    request.set_index(index);
    return Ask(kDrainMethod, request);
  }
  std::shared_ptr<FarEnd> Checkpoint() {
    return Ask(kCheckpointMethod, proto::CheckpointRequest());
  }
  static StoredCheckpoint Stored(uint64_t timeline, uint64_t step) {
    StoredCheckpoint checkpoint{.directory = absl::StrCat("step-", step)};
    checkpoint.manifest.timeline = timeline;
    checkpoint.manifest.cut_step = step;
    return checkpoint;
  }
  static std::string Rejection(const std::shared_ptr<FarEnd>& asker) {
    const absl::Status status = asker->finished().value_or(absl::OkStatus());
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }
  static uint64_t Step(const std::shared_ptr<FarEnd>& asker) {
    EXPECT_TRUE(asker->finished().has_value() && asker->finished()->ok());
    const auto replies = asker->Take<proto::CheckpointReply>();
    return replies.empty() ? 0 : replies[0].step();
  }
  static std::string Detail(const std::shared_ptr<FarEnd>& asker) {
    EXPECT_TRUE(asker->finished().has_value() && asker->finished()->ok());
    const auto replies = asker->Take<proto::DrainReply>();
    return replies.empty() ? "" : replies[0].detail();
  }

  FakeLoop loop_;
  JoinedWorkers workers_{&loop_};
  absl::StatusOr<OperatorRequests::Wanted> wanted_ =
      OperatorRequests::Wanted{.timeline = 5, .at_least = 7};
  std::optional<StoredCheckpoint> newest_;
  int asked_ = 0;
  bool admits_ = true;
  Wakeup wakeup_{&loop_, [this](Wakeup::Cause) {
                   ++asked_;
                   if (admits_) requests_.AdmitCheckpoints();
                 }};
  int stops_ = 0;
  OperatorRequests requests_{{.membership = workers_.membership(),
                              .ps_count = 2,
                              .status = [] { return proto::StatusReply(); },
                              .stop = [this] { ++stops_; },
                              .wanted_now = [this] { return wanted_; },
                              .newest = &newest_,
                              .wakeup = &wakeup_}};
};

TEST_F(OperatorRequestsTest, ACheckpointIsAnsweredByOneOfItsTimelineThatHasAllThatWasDone) {
  const auto first = Checkpoint();
  EXPECT_TRUE(requests_.checkpoint_wanted());
  loop_.RunPosted();
  EXPECT_EQ(asked_, 1);
  wanted_->at_least = 9;
  const auto second = Checkpoint();
  requests_.OnCommitted(Stored(5, 6));
  requests_.OnCommitted(Stored(4, 30));
  EXPECT_FALSE(first->finished().has_value());
  requests_.OnCommitted(Stored(5, 8));
  EXPECT_EQ(Step(first), 8u);
  EXPECT_FALSE(second->finished().has_value());
  EXPECT_TRUE(requests_.checkpoint_wanted());
  requests_.OnCommitted(Stored(5, 9));
  EXPECT_EQ(Step(second), 9u);
  EXPECT_FALSE(requests_.checkpoint_wanted());
}

TEST_F(OperatorRequestsTest, ACheckpointThatIsThereAlreadyIsTheAnswer) {
  newest_ = Stored(5, 7);
  EXPECT_EQ(Step(Checkpoint()), 7u);
  EXPECT_FALSE(requests_.checkpoint_wanted());
}

TEST_F(OperatorRequestsTest, WhereThereWillBeNoneItSaysWhy) {
  wanted_ = absl::UnavailableError("no steps are being done now");
  EXPECT_EQ(Rejection(Checkpoint()), "no steps are being done now");
  wanted_ = OperatorRequests::Wanted{};
  const auto waiting = Checkpoint();
  requests_.RejectCheckpoints("the disk is full");
  EXPECT_EQ(Rejection(waiting), "no checkpoint: the disk is full");
  EXPECT_FALSE(requests_.checkpoint_wanted());
}

TEST_F(OperatorRequestsTest, AnEarlierFailureDoesNotRejectANewRequest) {
  admits_ = false;
  const auto asking = Checkpoint();
  EXPECT_EQ(asked_, 1);
  requests_.RejectCheckpoints("the disk was full");
  EXPECT_FALSE(asking->finished().has_value());
  EXPECT_FALSE(requests_.checkpoint_wanted());
  requests_.AdmitCheckpoints();
  EXPECT_TRUE(requests_.checkpoint_wanted());
  requests_.OnCommitted(Stored(5, 7));
  EXPECT_EQ(Step(asking), 7u);
}

TEST_F(OperatorRequestsTest, OnlySoManyWaitForACheckpointAndWhoGoesMakesRoom) {
  std::vector<std::shared_ptr<FarEnd>> asking;
  for (int i = 0; i < 64; ++i) asking.push_back(Checkpoint());
  EXPECT_THAT(Rejection(Checkpoint()), HasSubstr("64 "));
  asking[3]->Close(absl::CancelledError("Ctrl-C"));
  loop_.RunUntilIdle();
  EXPECT_FALSE(Checkpoint()->finished().has_value());
}

TEST_F(OperatorRequestsTest, ASecondRequestOnAStreamEndsTheFirst) {
  for (const bool admitted : {true, false}) {
    admits_ = admitted;
    const auto asker = Checkpoint();
    EXPECT_EQ(requests_.checkpoint_wanted(), admitted);
    asker->Send(proto::CheckpointRequest());
    loop_.RunUntilIdle();
    ASSERT_TRUE(asker->finished().has_value());
    EXPECT_EQ(asker->finished()->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(requests_.checkpoint_wanted());
    requests_.AdmitCheckpoints();
    EXPECT_FALSE(requests_.checkpoint_wanted());
  }
}

TEST_F(OperatorRequestsTest, AWorkerIsToldToLeaveAndItsEndIsTheAnswer) {
  Worker& leaves = workers_.Join(1);
  workers_.Join(2);
  const auto drain = Drain("worker", 1);
  const auto orders = workers_.Orders(1);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].drain().reason(), "an operator drains this worker");
  EXPECT_TRUE(workers_.Orders(2).empty());
  EXPECT_FALSE(leaves.ready) << "it would get more work";
  EXPECT_FALSE(drain->finished().has_value());
  workers_.membership()->record(leaves).state = Membership::Record::State::kLeft;
  workers_.Break(1);
  EXPECT_EQ(Detail(drain), "worker 1 (node, pid 101) has left");
  const auto lost = Drain("worker", 2);
  workers_.Break(2);
  EXPECT_THAT(Detail(lost), HasSubstr("connection reset"));
}

TEST_F(OperatorRequestsTest, ATaskThatCannotBeDrainedIsNamed) {
  workers_.Join(3);
  EXPECT_THAT(Rejection(Drain("ps", 1)), HasSubstr("chief"));
  EXPECT_THAT(Rejection(Drain("ps", 2)), HasSubstr("ps 2 ")) << "it is in no spec";
  EXPECT_THAT(Rejection(Drain("worker", 0)), EndsWith(": 3"));
  EXPECT_THAT(Rejection(Drain("evaluator", 0)), HasSubstr("SIGTERM"));
}

TEST_F(OperatorRequestsTest, TheCoordinatorIsStoppedAndTheEndIsTheAnswer) {
  const auto drain = Drain("chief", 0);
  const auto checkpoint = Checkpoint();
  EXPECT_EQ(stops_, 1);
  EXPECT_FALSE(drain->finished().has_value());
  requests_.OnOver(absl::CancelledError("stopped: all is kept"), /*kept=*/true);
  EXPECT_EQ(Detail(drain), "the coordinator has stopped: all is kept");
  EXPECT_EQ(Rejection(checkpoint), "no checkpoint: the coordinator stops");
  EXPECT_EQ(Detail(Drain("chief", 0)), "the coordinator has stopped: all is kept");
  EXPECT_EQ(stops_, 1) << "it has stopped";
  EXPECT_EQ(Rejection(Drain("worker", 0)), "the coordinator stops");
}

TEST_F(OperatorRequestsTest, ADrainThatLosesStepsOrFailsIsNoSuccess) {
  const auto drain = Drain("chief", 0);
  requests_.OnOver(absl::CancelledError("stopped: no room"), /*kept=*/false);
  EXPECT_EQ(Rejection(drain), "the coordinator has stopped: no room");
  requests_.OnOver(absl::InternalError("another leads"), /*kept=*/true);
  EXPECT_EQ(Rejection(Drain("chief", 0)), "the coordinator has failed: another leads");
  requests_.OnOver(absl::OkStatus(), /*kept=*/true);
  EXPECT_THAT(Detail(Drain("chief", 0)), HasSubstr("done"));
}

}  // namespace
}  // namespace shoal
