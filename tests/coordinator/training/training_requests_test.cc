// What operators ask a TrainingRun for: Cluster.Drain and Cluster.Checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"
#include "tests/coordinator/operators/operator_request.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

using Request = OperatorRequest;

Request Drain(ScriptedCluster* cluster, const std::string& type, uint32_t index) {
  return Request::Drain(cluster, type, index);
}

Request Checkpoint(ScriptedCluster* cluster) { return Request::Checkpoint(cluster); }

TEST(TrainingRequestsTest, ADrainedWorkerIsToldAndGetsNoMoreWork) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  ScriptedWorker& other = cluster.Join(1);
  Request drain = Drain(&cluster, "worker", 0);
  EXPECT_THAT(worker.drained, HasSubstr("operator"));
  EXPECT_FALSE(drain.answered()) << "it is still there";
  cluster.FinishStep(worker);
  EXPECT_THAT(worker.leased, ElementsAre(0, 1)) << "nothing new";
  worker.Leave("drained");
  cluster.Disconnect(worker);
  EXPECT_TRUE(drain.status().ok()) << drain.status();
  EXPECT_THAT(drain.reply<proto::DrainReply>().detail(),
              AllOf(HasSubstr("worker 0"), HasSubstr("has left")));
  cluster.FinishAll(other);
  EXPECT_TRUE(other.leased.contains(1)) << "what it handed back";
}

TEST(TrainingRequestsTest, ADrainThatCannotBeIsRejectedWithTheNextStep) {
  ScriptedCluster cluster({});
  for (const int index : {2, 0, 1}) cluster.Join(index);
  Request ps = Drain(&cluster, "ps", 0);
  EXPECT_THAT(ps.status(), FailsWith(absl::StatusCode::kFailedPrecondition, {"chief"}));
  Request endless = Drain(&cluster, std::string(1 << 20, 'x'), 3);
  EXPECT_LT(endless.status().message().size(), 1000u);
  EXPECT_TRUE(absl::IsNotFound(Drain(&cluster, "ps", 1).status())) << "it is in no cluster spec";
  Request unknown = Drain(&cluster, "worker", 3);
  EXPECT_TRUE(absl::IsNotFound(unknown.status()));
  EXPECT_THAT(std::string(unknown.status().message()), EndsWith(": 0, 1, 2"));
}

// It is no worker until its hello.
TEST(TrainingRequestsTest, AWorkerWithoutAHelloCannotBeDrained) {
  ScriptedCluster cluster({});
  const auto far = std::make_shared<FarEnd>(&cluster.loop, "host", kWorkMethod);
  far->set_callbacks(*cluster.run->Accept(kWorkMethod, far->MakeStream()));
  Request last = Drain(&cluster, "worker", UINT32_MAX);
  EXPECT_TRUE(absl::IsNotFound(last.status())) << last.status();
}

TEST(TrainingRequestsTest, ADrainedChiefStopsWithACheckpoint) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  Request drain = Drain(&cluster, "chief", 0);
  Request again = Drain(&cluster, "chief", 0);
  Drain(&cluster, "chief", 0).Cancel();
  EXPECT_FALSE(drain.answered()) << "nothing is written yet";
  cluster.FinishAll(worker);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(absl::IsCancelled(*cluster.over));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
  ASSERT_TRUE(drain.status().ok()) << drain.status();
  EXPECT_THAT(drain.reply<proto::DrainReply>().detail(),
              HasSubstr(cluster.run_dir() + "/checkpoints/step-000000000002"));
  EXPECT_TRUE(again.status().ok());
  EXPECT_TRUE(Drain(&cluster, "chief", 0).status().ok()) << "it has stopped already";
}

TEST(TrainingRequestsTest, ADrainedChiefSaysWhyThereIsNoCheckpoint) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 5})"});
  ScriptedWorker& worker = cluster.Join(0);
  while (cluster.StoredSteps().empty()) cluster.FinishStep(worker);
  cluster.ps[0]->write_error = "no space left";
  const Request drain = Drain(&cluster, "chief", 0);
  cluster.FinishAll(worker);
  cluster.Advance(std::chrono::minutes(1));
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_THAT(drain.status(), FailsWith(absl::StatusCode::kUnavailable,
                                        {"no space left", " 2 steps ",
                                         cluster.run_dir() + "/checkpoints/step-000000000005"}));
}

TEST(TrainingRequestsTest, ADrainedChiefThatHadNothingToDoHasLostNothing) {
  ScriptedCluster cluster({});
  Request drain = Drain(&cluster, "chief", 0);
  ASSERT_TRUE(drain.status().ok()) << drain.status();
  EXPECT_THAT(drain.reply<proto::DrainReply>().detail(), HasSubstr("before training began"));
}

TEST(TrainingRequestsTest, ACheckpointHasAllThatIsDone) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  Request first = Checkpoint(&cluster);
  EXPECT_FALSE(first.answered()) << "leased steps belong to it";
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  ASSERT_TRUE(first.status().ok()) << first.status();
  const auto reply = first.reply<proto::CheckpointReply>();
  EXPECT_EQ(reply.step(), 3u);
  EXPECT_THAT(reply.directory(), HasSubstr("/checkpoints/step-000000000003"));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(3));
}

// What it has to hold is what is done, not what is leased: a stop takes some of that back.
TEST(TrainingRequestsTest, ARequestBeforeAStopGetsItsCheckpoint) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  const Request first = Checkpoint(&cluster);
  cluster.FinishStep(worker);
  Request request = Checkpoint(&cluster);
  EXPECT_FALSE(request.answered());
  EXPECT_EQ(*worker.leased.rbegin(), 2u) << "above the cut";
  worker.begun_below = 2;
  cluster.run->Stop();
  cluster.Settle();
  cluster.FinishAll(worker);
  ASSERT_TRUE(cluster.over.has_value());
  EXPECT_TRUE(request.status().ok()) << request.status();
  EXPECT_EQ(request.reply<proto::CheckpointReply>().step(), 2u);
}

TEST(TrainingRequestsTest, TwoWhoAskAtOnceGetOneCheckpoint) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  Request first = Checkpoint(&cluster), second = Checkpoint(&cluster);
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  EXPECT_TRUE(first.answered() && second.answered());
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(2));
}

TEST(TrainingRequestsTest, ACallIsOneRequest) {
  ScriptedCluster cluster({});
  cluster.Join(0);
  const auto ask = [&cluster](int requests) {
    auto stream = std::make_shared<FarEnd>(&cluster.loop, "operator", kCheckpointMethod);
    auto callbacks = cluster.run->Accept(kCheckpointMethod, stream->MakeStream());
    const std::function<void()> half_closed = callbacks->on_half_closed;
    stream->set_callbacks(*std::move(callbacks));
    for (int i = 0; i < requests; ++i) stream->Send(proto::CheckpointRequest());
    cluster.loop.Post(half_closed);
    cluster.Settle();
    return stream->finished().value_or(absl::OkStatus());
  };
  EXPECT_THAT(ask(0), FailsWith(absl::StatusCode::kInvalidArgument, {"without"}));
  EXPECT_THAT(ask(2), FailsWith(absl::StatusCode::kInvalidArgument, {"one"}));
  EXPECT_TRUE(ask(1).ok());
}

TEST(TrainingRequestsTest, ACancelledRequestDoesNotCount) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  for (int i = 0; i < 70; ++i) {
    Request cancelled = Checkpoint(&cluster);
    EXPECT_FALSE(cancelled.answered()) << i << ": " << cancelled.status();
    cancelled.Cancel();
    cluster.Settle();
  }
  for (int i = 0; i < 70; ++i) {
    Request cancelled = Drain(&cluster, "worker", 0);
    EXPECT_FALSE(cancelled.answered()) << i << ": " << cancelled.status();
    cancelled.Cancel();
    cluster.Settle();
  }
  Request waiting = Checkpoint(&cluster);
  EXPECT_FALSE(waiting.answered()) << waiting.status();
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  EXPECT_TRUE(waiting.status().ok()) << waiting.status();
}

TEST(TrainingRequestsTest, ACheckpointThatFailsSaysWhyAndTheJobGoesOn) {
  ScriptedCluster cluster({});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->write_error = "no space left";
  Request request = Checkpoint(&cluster);
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  EXPECT_THAT(request.status(), FailsWith(absl::StatusCode::kUnavailable, {"ps 0: no space left"}));
  EXPECT_THAT(cluster.run->Status().last_checkpoint().last_error(), HasSubstr("no space left"));
  cluster.ps[0]->write_error.clear();
  cluster.FinishAll(worker);
  cluster.Advance(seconds(6));
  EXPECT_TRUE(cluster.over.has_value() || worker.job_done);
}

TEST(TrainingRequestsTest, WithoutWorkersThereIsNoCheckpointAndItSaysWhy) {
  ScriptedCluster cluster({});
  Request request = Checkpoint(&cluster);
  EXPECT_THAT(std::string(request.status().message()), HasSubstr("shoal-worker --chief=chief:1"));
}

// Its cut is kept until then, and there is one at a time.
TEST(TrainingRequestsTest, ACheckpointThatWaitsForAnEvaluationSaysSo) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& worker = cluster.Join(0);
  while (worker.evaluations.empty()) cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  const Request request = Checkpoint(&cluster);
  cluster.Advance(seconds(10));
  EXPECT_FALSE(request.answered());
  EXPECT_THAT(cluster.run->Status().waiting(),
              testing::Contains(
                  AllOf(HasSubstr("epoch 1 "), HasSubstr("0 of 4"), HasSubstr("checkpoint"))));
  while (!worker.evaluations.empty()) {
    worker.Evaluate();
    cluster.Settle();
  }
  while (!request.answered() && !worker.leases.empty()) cluster.FinishStep(worker);
  EXPECT_TRUE(request.status().ok()) << request.status();
}

// A periodic cut that failed is not left until the next period.
TEST(TrainingRequestsTest, AFailedCutIsTriedAgainSoon) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 4})"});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->write_error = "no space left";
  for (int i = 0; i < 4; ++i) cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
  cluster.ps[0]->write_error.clear();
  cluster.Advance(seconds(6));
  cluster.FinishStep(worker);
  cluster.FinishStep(worker);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(6));
  EXPECT_THAT(cluster.run->Status().last_checkpoint().last_error(), IsEmpty());
}

TEST(TrainingRequestsTest, WaitsNameThePeerTheTimeAndTheReason) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 4})"});
  cluster.Advance(seconds(3));
  EXPECT_THAT(cluster.run->Status().waiting(),
              ElementsAre(AllOf(HasSubstr(" 3 s"), HasSubstr("shoal-worker --chief=chief:1"))));
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  EXPECT_THAT(cluster.run->Status().waiting(), IsEmpty());
  // It holds two steps of the cut at 4, and does nothing. A slow step is not worth a word yet.
  cluster.Advance(seconds(8));
  EXPECT_THAT(cluster.run->Status().waiting(), IsEmpty());
  cluster.Advance(seconds(4));
  EXPECT_THAT(cluster.run->Status().waiting(),
              ElementsAre(AllOf(HasSubstr("step 4, for 12 s"), HasSubstr("ps 0 "),
                                HasSubstr("step 1 "), HasSubstr("worker 0"))));
  cluster.Disconnect(worker);
  EXPECT_THAT(cluster.run->Status().waiting(0),
              AllOf(HasSubstr("worker 0: "), HasSubstr("connection reset")));
}

// Steps may be as slow as they are; who waits for the checkpoint hears of them all the same.
TEST(TrainingRequestsTest, ACutThatLacksStepsThatAreComputedIsNotHeldUp) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 4})"});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  proto::WorkerReport report;
  report.mutable_waiting()->set_what("computing step 1 for 10 s");
  report.mutable_waiting()->set_computing(true);
  for (int i = 0; i < 4; ++i) {
    cluster.Advance(seconds(10));
    worker.stream().Send(report);
    cluster.Settle();
    EXPECT_THAT(cluster.run->Status().waiting(), IsEmpty());
  }
  const OperatorRequest request = OperatorRequest::Checkpoint(&cluster);
  EXPECT_THAT(cluster.run->Status().waiting(),
              ElementsAre(AllOf(HasSubstr("step 4, for 40 s"), HasSubstr("computing step 1"))));
}

}  // namespace
}  // namespace shoal
