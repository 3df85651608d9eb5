#include "worker/worker_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/daemon/version.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"
#include "tests/worker/exchange_peer.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr uint64_t kTimeline = 70;
constexpr Time kDrainTimeout = seconds(8);

// Computes when the test says so.
class FakeComputer : public StepComputer {
 public:
  explicit FakeComputer(const SmallModel* model)
      : model_(model),
        parameters_(model->layout.size),
        cut_parameters_(model->layout.size),
        gradients_(model->layout.size, 1) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override {
    calls.push_back(absl::StrCat("prepare ", job_text, " ", ps_count));
    prepare_done_ = std::move(done);
  }
  void Expect(uint64_t first_step, uint64_t count) override {
    calls.push_back(absl::StrCat("expect ", first_step, " ", count));
  }
  void Forget() override { calls.push_back("forget"); }
  void Train(uint64_t step, std::function<void(int, int)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override {
    EXPECT_FALSE(busy()) << "one computation at a time";
    calls.push_back(absl::StrCat("train ", step));
    on_chunk_ = std::move(on_chunk);
    done_ = std::move(done);
  }
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override {
    EXPECT_FALSE(busy()) << "one computation at a time";
    calls.push_back(absl::StrCat("evaluate ", batch));
    done_ = std::move(done);
  }

  bool busy() const { return done_ != nullptr; }
  void FinishPrepare(const absl::Status& status = absl::OkStatus()) {
    const auto done = std::exchange(prepare_done_, nullptr);
    if (!status.ok()) return done(status);
    done(Prepared{.training_examples = 200,
                  .test_examples = 50,
                  .shard_map = &model_->shard_map,
                  .layout = &model_->layout,
                  .parameters = parameters_,
                  .cut_parameters = cut_parameters_,
                  .gradients = gradients_});
  }
  void FinishChunks() {
    for (int ps = 0; ps < 2; ++ps) {
      for (size_t k = 0; k < model_->chunks(ps).size(); ++k) {
        if (model_->chunks(ps)[k].trainable) on_chunk_(ps, static_cast<int>(k));
      }
    }
  }
  void Finish(absl::StatusOr<BatchOutcome> outcome) {
    std::exchange(done_, nullptr)(std::move(outcome));
  }
  void Finish() {
    Finish(BatchOutcome{
        .examples = 16, .loss_sum = 32, .metric_sums = {8}, .input_wait_us = 3, .compute_us = 5});
  }
  std::vector<std::string> TakeCalls() { return std::exchange(calls, {}); }

  std::vector<std::string> calls;

 private:
  const SmallModel* const model_;
  std::vector<float> parameters_, cut_parameters_, gradients_;
  std::function<void(absl::StatusOr<Prepared>)> prepare_done_;
  std::function<void(int, int)> on_chunk_;
  std::function<void(absl::StatusOr<BatchOutcome>)> done_;
};

class WorkerSessionTest : public testing::Test {
 protected:
  explicit WorkerSessionTest(std::optional<uint32_t> index = 4) {
    session_ = std::make_unique<WorkerSession>(WorkerSession::Options{
        .loop = &loop_,
        .network = &network_,
        .computer = &computer_,
        .chief = "chief:1",
        .index = index,
        .incarnation = 99,
        .host = "node",
        .pid = 12,
        .coordinator_timeout = minutes(10),
        .drain_timeout = kDrainTimeout,
        .on_step =
            [this](uint64_t timeline, uint64_t step) {
              events_.push_back(absl::StrCat("step ", timeline, " ", step));
            },
        .on_index = [this](uint32_t given) { events_.push_back(absl::StrCat("index ", given)); },
        .on_over =
            [this](WorkerSession::End end, const absl::Status& status) {
              EXPECT_FALSE(end_.has_value()) << "over twice";
              end_ = end;
              why_ = std::string(status.message());
            }});
    session_->Start();
  }

  FarEnd& chief() { return network_.Newest("chief:1"); }
  FarEnd& ps(int index) { return network_.Newest(absl::StrCat("ps-", index, ":1")); }

  // What the coordinator has got since the last call.
  std::vector<proto::WorkerReport> TakeReports() {
    loop_.RunUntilIdle();
    return chief().Take<proto::WorkerReport>();
  }
  void Order(const proto::WorkerOrder& order) {
    chief().Send(order);
    loop_.RunUntilIdle();
  }
  void Welcome(uint32_t index = 4, std::vector<std::string> addresses = {"ps-0:1", "ps-1:1"}) {
    proto::WorkerOrder order;
    order.mutable_welcome()->set_index(index);
    order.mutable_welcome()->set_job("the job");
    for (const std::string& address : addresses) order.mutable_welcome()->add_ps(address);
    Order(order);
  }
  void Open(uint64_t timeline) {
    timeline_ = timeline;
    proto::WorkerOrder order;
    order.mutable_timeline_opened()->set_timeline(timeline);
    Order(order);
  }
  void Lease(uint64_t first, uint64_t count) {
    proto::WorkerOrder order;
    order.mutable_lease()->set_timeline(timeline_);
    order.mutable_lease()->set_first(first);
    order.mutable_lease()->set_count(count);
    Order(order);
  }
  void OrderEvaluation(uint64_t cut_step, uint64_t batch) {
    proto::WorkerOrder order;
    order.mutable_evaluate()->set_timeline(timeline_);
    order.mutable_evaluate()->set_cut_step(cut_step);
    order.mutable_evaluate()->set_batch(batch);
    Order(order);
  }
  // Both ps answer whatever has come, as long as there is something.
  void ServePs() {
    bool served = true;
    while (std::exchange(served, false)) {
      loop_.RunUntilIdle();
      for (int i = 0; i < 2; ++i) {
        if (network_.CountOf(absl::StrCat("ps-", i, ":1")) == 0 || !ps(i).open()) continue;
        for (const proto::ExchangeRequest& request : ps(i).Take<proto::ExchangeRequest>()) {
          served = true;
          Serve(i, request);
        }
      }
    }
  }
  void Serve(int i, const proto::ExchangeRequest& request) {
    if (request.has_hello()) return ExchangePeer::SayHello(ps(i), timeline_);
    if (request.has_push()) {
      ++pushes_[request.push().step()];
      const int chunk = static_cast<int>(request.push().chunk());
      return ExchangePeer::SendApplied(ps(i), timeline_, request.push().step(), chunk, ++version_,
                                       model_.Filled(i, chunk, 1));
    }
    const proto::Pull& pull = request.pull();
    pulls_ += pull.chunk_count();
    for (uint32_t k = pull.first_chunk(); k < pull.first_chunk() + pull.chunk_count(); ++k) {
      if (pull.cut_step() != 0 && pull.cut_step() != held_cut_) {
        return ExchangePeer::Refuse(ps(i), {pull.timeline(), pull.cut_step()}, timeline_,
                                    "not held");
      }
      ExchangePeer::SendValues(ps(i), timeline_, k, version_, pull.cut_step(),
                               model_.Filled(i, static_cast<int>(k), 1));
    }
  }
  // Up to a session that waits for leases in kTimeline.
  void GetReady() {
    Welcome();
    computer_.FinishPrepare();
    Open(kTimeline);
    ServePs();
    TakeReports();
    computer_.TakeCalls();
    events_.clear();
  }
  // Up to one that computes this step.
  void StartStep(uint64_t step, uint64_t leases = 1) {
    GetReady();
    Lease(step, leases);
    ServePs();
    EXPECT_THAT(computer_.TakeCalls(), Contains(absl::StrCat("train ", step)));
  }
  void FinishStep() {
    computer_.FinishChunks();
    computer_.Finish();
    ServePs();
  }
  void LoseChief() {
    chief().Close(absl::UnavailableError("connection reset"));
    loop_.RunUntilIdle();
  }
  // Lets it find the coordinator again.
  void Reconnect() {
    const int before = network_.CountOf("chief:1");
    for (int i = 0; i < 100 && network_.CountOf("chief:1") == before; ++i)
      loop_.Advance(milliseconds(50));
    EXPECT_EQ(network_.CountOf("chief:1"), before + 1);
  }
  void ExpectLeaving(const std::string& reason, bool failed) {
    const auto reports = TakeReports();
    ASSERT_FALSE(reports.empty());
    ASSERT_TRUE(reports.back().has_leaving()) << reports.back().ShortDebugString();
    EXPECT_THAT(reports.back().leaving().reason(), HasSubstr(reason));
    EXPECT_EQ(reports.back().leaving().failed(), failed);
    ASSERT_TRUE(chief().finished().has_value()) << "the stream ends in order, so that this arrives";
    EXPECT_FALSE(end_.has_value()) << "not before the coordinator has read it";
    chief().Close(absl::OkStatus());
    loop_.RunUntilIdle();
  }
  void ExpectDraining() {
    const auto reports = TakeReports();
    EXPECT_TRUE(std::any_of(reports.begin(), reports.end(),
                            [](const proto::WorkerReport& each) { return each.has_draining(); }));
  }
  void ExpectOver(WorkerSession::End end, const std::string& why = "") {
    ASSERT_TRUE(end_.has_value());
    EXPECT_EQ(*end_, end);
    EXPECT_THAT(why_, HasSubstr(why));
    // And that is all.
    const size_t streams = network_.opened().size();
    computer_.TakeCalls();
    loop_.Advance(minutes(1));
    EXPECT_EQ(network_.opened().size(), streams);
    EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  const SmallModel model_;
  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  FakeComputer computer_{&model_};
  uint64_t timeline_ = kTimeline;
  uint64_t held_cut_ = 0;
  uint64_t version_ = 0;
  uint64_t pulls_ = 0;              // chunks
  std::map<uint64_t, int> pushes_;  // by step: chunks
  std::vector<std::string> events_;
  std::optional<WorkerSession::End> end_;
  std::string why_;
  std::unique_ptr<WorkerSession> session_;
};

// --- From the hello to the first step ------------------------------------------------------------

TEST_F(WorkerSessionTest, SaysHelloPreparesAndIsReady) {
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  const proto::WorkerHello& hello = reports[0].hello();
  EXPECT_EQ(chief().method(), kWorkMethod);
  EXPECT_EQ(hello.version(), kVersion);
  EXPECT_EQ(hello.index(), 4u);
  EXPECT_EQ(hello.host(), "node");
  EXPECT_EQ(hello.pid(), 12u);
  EXPECT_EQ(hello.incarnation(), 99u);
  EXPECT_EQ(hello.timeline(), 0u);
  EXPECT_THAT(hello.held_steps(), IsEmpty());
  Welcome();
  EXPECT_THAT(TakeEvents(), ElementsAre("index 4"));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prepare the job 2"));
  EXPECT_THAT(TakeReports(), IsEmpty());
  computer_.FinishPrepare();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].ready().training_examples(), 200u);
  EXPECT_EQ(reports[0].ready().test_examples(), 50u);
  EXPECT_EQ(reports[0].ready().shard_map_fingerprint(), model_.shard_map.Fingerprint());
}

TEST_F(WorkerSessionTest, LeasePullTrainReport) {
  GetReady();
  Lease(7, 2);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("expect 7 2")) << "its batches are read meanwhile";
  ServePs();
  EXPECT_GT(pulls_, 0u);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 7"));
  computer_.FinishChunks();
  ServePs();
  EXPECT_THAT(TakeReports(), IsEmpty()) << "it is not computed completely";
  loop_.Advance(milliseconds(2));
  computer_.Finish();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].steps_done().timeline(), kTimeline);
  ASSERT_EQ(reports[0].steps_done().steps_size(), 1);
  const proto::StepDone& done = reports[0].steps_done().steps(0);
  EXPECT_EQ(done.step(), 7u);
  EXPECT_EQ(done.examples(), 16u);
  EXPECT_DOUBLE_EQ(done.loss_sum(), 32);
  EXPECT_THAT(done.metric_sums(), ElementsAre(8));
  EXPECT_EQ(done.input_wait_us(), 3u);
  EXPECT_EQ(done.compute_us(), 5u);
  EXPECT_EQ(done.exchange_us(), 2000u - 8u);
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  // The next one at once: the answers to the pushes have brought its parameters.
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 8"));
  const uint64_t pulls = pulls_;
  FinishStep();
  EXPECT_EQ(pulls_, pulls);
  EXPECT_THAT(TakeReports(), SizeIs(1));
}

TEST_F(WorkerSessionTest, AStepIsNotReportedBeforeEveryPsHasIt) {
  StartStep(7);
  computer_.FinishChunks();
  computer_.Finish();
  loop_.Advance(seconds(30));
  EXPECT_THAT(TakeReports(), IsEmpty());
  EXPECT_THAT(TakeEvents(), IsEmpty());
  ServePs();
  EXPECT_THAT(TakeReports(), SizeIs(1));
}

TEST_F(WorkerSessionTest, LeasesOfAnotherTimelineOrWithoutSenseAreDropped) {
  GetReady();
  timeline_ = kTimeline + 1;
  Lease(7, 2);
  OrderEvaluation(5, 0);
  timeline_ = kTimeline;
  Lease(7, UINT64_MAX);
  Order(proto::WorkerOrder());
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
}

TEST_F(WorkerSessionTest, AStepThatCannotBeComputedMakesItLeave) {
  StartStep(7);
  computer_.Finish(absl::DataLossError("train-images.idx ends after 12 of 60000 images"));
  ExpectLeaving("train-images.idx ends after 12", /*failed=*/true);
  ExpectOver(WorkerSession::End::kFailed, "train-images.idx ends after 12");
}

TEST_F(WorkerSessionTest, WithoutItsDataItLeavesWithTheReason) {
  Welcome();
  computer_.FinishPrepare(absl::NotFoundError("no such file: /data/train-images.idx"));
  ExpectLeaving("no such file: /data/train-images.idx", true);
  ExpectOver(WorkerSession::End::kFailed, "no such file: /data/train-images.idx");
}

TEST_F(WorkerSessionTest, APsOfAnotherVersionMakesItLeave) {
  GetReady();
  ps(1).Close(absl::FailedPreconditionError("worker 4 is Shoal 1, this process is Shoal 2"));
  loop_.RunUntilIdle();
  ExpectLeaving("this process is Shoal 2", true);
  ExpectOver(WorkerSession::End::kFailed, "this process is Shoal 2");
}

// --- Without a coordinator -----------------------------------------------------------------------

TEST_F(WorkerSessionTest, WorksOnWithoutACoordinatorAndReportsLater) {
  StartStep(7, 2);
  LoseChief();
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 8"));
  Reconnect();
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].hello().timeline(), kTimeline);
  EXPECT_THAT(reports[0].hello().held_steps(), ElementsAre(8));
  Lease(30, 1);
  Welcome();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].has_ready());
  EXPECT_EQ(reports[1].steps_done().timeline(), kTimeline);
  ASSERT_EQ(reports[1].steps_done().steps_size(), 1);
  EXPECT_EQ(reports[1].steps_done().steps(0).step(), 7u);
  FinishStep();
  reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u) << "each once";
  EXPECT_EQ(reports[0].steps_done().steps(0).step(), 8u);
}

TEST_F(WorkerSessionTest, ARejectionThatIsNotFinalMeansAnotherStream) {
  StartStep(7);
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason("reported nothing for 60 s");
  Order(order);
  FinishStep();
  EXPECT_THAT(TakeReports(), IsEmpty()) << "nobody listens any more";
  chief().Close(absl::OkStatus());
  Reconnect();
  TakeReports();
  Welcome();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].steps_done().steps(0).step(), 7u);
}

TEST_F(WorkerSessionTest, WhatIsReportedLaterIsForgottenWithItsTimeline) {
  StartStep(7);
  LoseChief();
  FinishStep();
  Reconnect();
  TakeReports();
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(kTimeline + 1);
  Order(order);
  Welcome();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].has_ready());
}

TEST_F(WorkerSessionTest, LosesTheCoordinatorWhilePreparing) {
  Welcome();
  LoseChief();
  computer_.FinishPrepare();
  Reconnect();
  TakeReports();
  computer_.TakeCalls();
  Welcome();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "once is enough";
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].has_ready());
}

TEST_F(WorkerSessionTest, IsReadyOnceWhereTheStreamWasLostWhilePreparing) {
  Welcome();
  LoseChief();
  Reconnect();
  TakeReports();
  Welcome();
  EXPECT_THAT(TakeReports(), IsEmpty());
  computer_.FinishPrepare();
  EXPECT_THAT(TakeReports(), SizeIs(1));
}

TEST_F(WorkerSessionTest, AfterTenMinutesAloneItGivesUp) {
  GetReady();
  LoseChief();
  const Time alone = loop_.Now();
  while (!end_.has_value() && loop_.Now() < alone + minutes(20)) {
    loop_.Advance(milliseconds(100));
    if (chief().open()) chief().Close(absl::UnavailableError("refused"));
  }
  EXPECT_GE(loop_.Now() - alone, minutes(10));
  EXPECT_LE(loop_.Now() - alone, minutes(10) + seconds(3));
  ExpectOver(WorkerSession::End::kNoCoordinator, "no coordinator at chief:1 since 60");
}

TEST_F(WorkerSessionTest, OtherPsMeanAnotherStart) {
  GetReady();
  LoseChief();
  Reconnect();
  Welcome(4, {"ps-0:1"});
  ExpectOver(WorkerSession::End::kNoCoordinator, "other ps");
}

class UnlistedWorkerSessionTest : public WorkerSessionTest {
 protected:
  UnlistedWorkerSessionTest() : WorkerSessionTest(std::nullopt) {}
};

// The index in a hello is that of the cluster spec; a later coordinator does not know the one that
// a former one gave.
TEST_F(UnlistedWorkerSessionTest, TakesTheIndexThatItIsGiven) {
  EXPECT_FALSE(TakeReports()[0].hello().has_index());
  Welcome(5);
  EXPECT_THAT(TakeEvents(), ElementsAre("index 5"));
  computer_.FinishPrepare();
  for (const uint32_t index : {5, 6}) {
    LoseChief();
    Reconnect();
    EXPECT_FALSE(TakeReports()[0].hello().has_index());
    Welcome(index);
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("index 6"));
  EXPECT_FALSE(end_.has_value());
}

// --- The end of a timeline -----------------------------------------------------------------------

TEST_F(WorkerSessionTest, ANewTimelineWhileComputingDropsEverything) {
  StartStep(7, 3);
  const int pushes_before = pushes_[7];
  proto::WorkerOrder order;
  order.mutable_timeline_opened()->set_timeline(kTimeline + 1);
  Order(order);
  timeline_ = kTimeline + 1;
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("forget"));
  Lease(5, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("expect 5 1")) << "the computer is still busy";
  computer_.FinishChunks();
  ServePs();
  EXPECT_EQ(pushes_[7], pushes_before) << "a gradient of the old timeline goes nowhere";
  computer_.Finish();
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 5"));
  FinishStep();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].steps_done().timeline(), kTimeline + 1);
  EXPECT_EQ(reports[0].steps_done().steps(0).step(), 5u);
  EXPECT_THAT(TakeEvents(), ElementsAre("step 71 5"));
}

TEST_F(WorkerSessionTest, ARefusalDropsEverythingAndIsReported) {
  StartStep(7, 3);
  computer_.FinishChunks();
  ExchangePeer::Refuse(ps(0), {kTimeline}, 0, "ps 0 is empty");
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].timeline_lost().timeline(), kTimeline);
  computer_.Finish();
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("forget"))
      << "there is nothing to do until another is open";
  EXPECT_THAT(TakeEvents(), IsEmpty());
  Open(kTimeline + 1);
  Lease(2, 1);
  const uint64_t pulls = pulls_;
  ServePs();
  EXPECT_GT(pulls_, pulls) << "of another timeline, nothing is known";
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("forget", "expect 2 1", "train 2"));
}

// The coordinator opens the same timeline again for a worker that was misled.
TEST_F(WorkerSessionTest, TheSameTimelineMayBeOpenedAgain) {
  StartStep(7, 3);
  ExchangePeer::Refuse(ps(0), {kTimeline}, 0, "an answer from before");
  loop_.RunUntilIdle();
  Open(kTimeline);
  Lease(9, 1);
  ServePs();
  computer_.TakeCalls();
  computer_.FinishChunks();
  computer_.Finish();  // step 7, which was dropped
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 9"));
  EXPECT_EQ(pushes_[7], 0);
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 9"));
}

TEST_F(WorkerSessionTest, TheTimelineItIsInOpenedAgainChangesNothing) {
  StartStep(7, 2);
  Open(kTimeline);
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty());
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
}

TEST_F(WorkerSessionTest, ATimelineLostWhilePulling) {
  GetReady();
  Lease(7, 1);
  ExchangePeer::Refuse(ps(1), {kTimeline}, 0, "ps 1 is empty");
  loop_.RunUntilIdle();
  ServePs();  // answers to the pull, too late
  EXPECT_THAT(computer_.TakeCalls(), Not(Contains("train 7")));
  Open(kTimeline + 1);
  Lease(3, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), Contains("train 3"));
}

// --- Evaluation ----------------------------------------------------------------------------------

TEST_F(WorkerSessionTest, EvaluatesBeforeItTrainsOn) {
  held_cut_ = 13;
  StartStep(20, 2);
  OrderEvaluation(13, 2);
  OrderEvaluation(13, 3);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "the step at hand first";
  const uint64_t pulls = pulls_;
  FinishStep();
  TakeReports();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 2"));
  EXPECT_GT(pulls_, pulls);
  const uint64_t with_cut = pulls_;
  computer_.Finish();
  ServePs();
  auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  const proto::EvaluationDone& done = reports[0].evaluation_done();
  EXPECT_EQ(done.timeline(), kTimeline);
  EXPECT_EQ(done.cut_step(), 13u);
  EXPECT_EQ(done.batch(), 2u);
  EXPECT_EQ(done.examples(), 16u);
  EXPECT_DOUBLE_EQ(done.loss_sum(), 32);
  EXPECT_THAT(done.metric_sums(), ElementsAre(8));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 3"));
  EXPECT_EQ(pulls_, with_cut) << "the cut is here already";
  computer_.Finish();
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("train 21"));
  EXPECT_EQ(pulls_, with_cut) << "nor are the live parameters lost";
}

TEST_F(WorkerSessionTest, AnEvaluationThatWasGivenUpIsDropped) {
  held_cut_ = 26;
  GetReady();
  OrderEvaluation(13, 0);
  OrderEvaluation(13, 1);
  OrderEvaluation(26, 4);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 4"));
  EXPECT_THAT(TakeReports(), IsEmpty());
}

TEST_F(WorkerSessionTest, ATimelineLostWhilePullingACut) {
  held_cut_ = 13;
  GetReady();
  OrderEvaluation(13, 0);
  Lease(20, 1);
  ExchangePeer::Refuse(ps(0), {kTimeline}, 0, "ps 0 is empty");
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeReports(),
              ElementsAre(testing::Property(&proto::WorkerReport::has_timeline_lost, true)));
  for (int i = 0; i < 2; ++i) {
    for (const proto::ExchangeRequest& request : ps(i).Take<proto::ExchangeRequest>()) {
      EXPECT_NE(request.pull().timeline(), 0u) << "nothing is asked for in no timeline";
    }
  }
  computer_.TakeCalls();
  Open(kTimeline + 1);
  Lease(3, 1);
  ServePs();
  EXPECT_THAT(computer_.TakeCalls(), Contains("train 3"));
}

TEST_F(WorkerSessionTest, ABatchThatCannotBeEvaluatedMakesItLeave) {
  held_cut_ = 13;
  GetReady();
  OrderEvaluation(13, 0);
  ServePs();
  computer_.Finish(absl::DataLossError("test-images.idx is damaged"));
  ExpectLeaving("test-images.idx is damaged", true);
  ExpectOver(WorkerSession::End::kFailed, "test-images.idx is damaged");
}

// --- The end -------------------------------------------------------------------------------------

TEST_F(WorkerSessionTest, TheJobIsDone) {
  GetReady();
  proto::WorkerOrder order;
  order.mutable_job_done();
  Order(order);
  ExpectOver(WorkerSession::End::kJobDone);
}

TEST_F(WorkerSessionTest, ARejectionIsTheEndWhenItIsFinal) {
  proto::WorkerOrder order;
  order.mutable_rejected()->set_reason("worker 4 is not in the cluster spec");
  Order(order);
  EXPECT_FALSE(end_.has_value());
  order.mutable_rejected()->set_final(true);
  Order(order);
  ExpectOver(WorkerSession::End::kFailed,
             "the coordinator says: worker 4 is not in the cluster spec");
}

TEST_F(WorkerSessionTest, ACoordinatorOfAnotherLanguageIsTheEnd) {
  chief().SendGarbage();
  loop_.RunUntilIdle();
  ExpectOver(WorkerSession::End::kFailed, "chief:1 does not speak");
}

// Also those that were on the way when it said so.
TEST_F(WorkerSessionTest, DrainsAfterTheStepsItHolds) {
  StartStep(7, 2);
  proto::WorkerOrder order;
  order.mutable_drain()->set_reason("make room");
  Order(order);
  session_->Drain("once more");
  ExpectDraining();
  Lease(40, 1);
  OrderEvaluation(13, 0);
  for (const char* step : {"step 70 7", "step 70 8", "step 70 40"}) {
    EXPECT_FALSE(chief().finished().has_value());
    FinishStep();
    EXPECT_THAT(TakeEvents(), ElementsAre(step));
  }
  ExpectLeaving("make room", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, BeginsNoStepLateInADrain) {
  StartStep(7, 3);
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout / 2);
  FinishStep();
  EXPECT_THAT(TakeEvents(), ElementsAre("step 70 7"));
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, TellsTheNextCoordinatorThatItIsDraining) {
  StartStep(7, 2);
  session_->Drain("SIGTERM");
  ExpectDraining();
  LoseChief();
  Reconnect();
  Welcome();
  ExpectDraining();
}

TEST_F(WorkerSessionTest, DrainsAtOnceWhenIdle) {
  GetReady();
  session_->Drain("SIGTERM");
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsBeforeItIsWelcome) {
  session_->Drain("SIGTERM");
  Welcome();  // on the way already
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "nothing is begun any more";
  EXPECT_THAT(TakeEvents(), IsEmpty());
  chief().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsBetweenTwoTries) {
  LoseChief();
  session_->Drain("SIGTERM");
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsWhenPrepared) {
  Welcome();
  session_->Drain("SIGTERM");
  computer_.FinishPrepare();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, DrainsWhenTheTimelineOfTheStepAtHandIsLost) {
  StartStep(7);
  session_->Drain("SIGTERM");
  computer_.FinishChunks();
  computer_.Finish();
  ExchangePeer::Refuse(ps(0), {kTimeline}, 0, "ps 0 is empty");
  loop_.RunUntilIdle();
  ExpectLeaving("SIGTERM", false);
  ExpectOver(WorkerSession::End::kDrained);
}

// Whatever it is doing, and whoever does not answer.
enum class State {
  kJoining,
  kPreparing,
  kIdle,
  kPulling,
  kTraining,
  kPushing,
  kPullingCut,
  kEvaluating
};

class DrainTimeoutTest : public WorkerSessionTest, public testing::WithParamInterface<State> {
 protected:
  void Reach(State state) {
    switch (state) {
      case State::kJoining:
        return;
      case State::kPreparing:
        return Welcome();
      case State::kIdle:
        return GetReady();
      case State::kPulling:
        GetReady();
        return Lease(7, 1);
      case State::kTraining:
        return StartStep(7);
      case State::kPushing:
        StartStep(7);
        computer_.FinishChunks();
        return computer_.Finish();
      case State::kPullingCut:
        GetReady();
        return OrderEvaluation(13, 0);
      case State::kEvaluating:
        held_cut_ = 13;
        GetReady();
        OrderEvaluation(13, 0);
        return ServePs();
    }
  }
};

TEST_P(DrainTimeoutTest, EndsInTime) {
  Reach(GetParam());
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout);
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_P(DrainTimeoutTest, EndsInTimeWithoutACoordinator) {
  Reach(GetParam());
  LoseChief();
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout);
  ExpectOver(WorkerSession::End::kDrained);
}

INSTANTIATE_TEST_SUITE_P(WorkerSession, DrainTimeoutTest,
                         testing::Values(State::kJoining, State::kPreparing, State::kIdle,
                                         State::kPulling, State::kTraining, State::kPushing,
                                         State::kPullingCut, State::kEvaluating));

TEST_F(WorkerSessionTest, AStepThatEndsLateLeavesNoMoreTimeToTheCoordinator) {
  StartStep(7);
  session_->Drain("SIGTERM");
  loop_.Advance(kDrainTimeout - milliseconds(200));
  FinishStep();
  loop_.Advance(milliseconds(200));
  ExpectOver(WorkerSession::End::kDrained);
}

TEST_F(WorkerSessionTest, SaysWhereItsTimeGoes) {
  const auto phase = [this](const char* name) {
    return SampleValue(*session_, "shoal_worker_phase_seconds_total", {name});
  };
  const auto waits = [this](const char* type, const char* index, const char* why) {
    return SampleValue(*session_, "shoal_worker_waiting_seconds", {type, index, why});
  };
  loop_.Advance(milliseconds(30));
  EXPECT_EQ(waits("chief", "0", "no connection"), 0.03);
  GetReady();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_connected"), 1);
  loop_.Advance(seconds(2));
  EXPECT_EQ(waits("chief", "0", "no steps"), 2);
  Lease(7, 2);
  EXPECT_EQ(waits("chief", "0", "no steps"), std::nullopt);
  loop_.Advance(seconds(3));  // the ps take their time with the parameters
  EXPECT_EQ(waits("ps", "1", "no answer"), 3);
  ServePs();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_leased_steps"), 1);
  loop_.Advance(seconds(5));
  FinishStep();
  EXPECT_DOUBLE_EQ(*phase("idle"), 2.03);
  EXPECT_EQ(phase("pull"), 3);
  EXPECT_DOUBLE_EQ(*phase("push") + *phase("input_wait") + *phase("compute"), 5);
  EXPECT_EQ(phase("evaluate"), 0);
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_steps_total"), 1);
  // Every chunk that is trained went out, and came back.
  const auto bytes = [this](const char* direction) {
    return SampleValue(*session_, "shoal_worker_payload_bytes_total", {"0", direction, "tcp"});
  };
  EXPECT_GT(*bytes("sent"), 0);
  EXPECT_GT(*bytes("received"), *bytes("sent")) << "the pull besides";
  LoseChief();
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_connected"), 0);
}

TEST_F(WorkerSessionTest, ReadyUnlessItOpensItsDataOrLeaves) {
  EXPECT_EQ(session_->NotReady(), "") << "a coordinator need not be there";
  Welcome();
  EXPECT_EQ(session_->NotReady(), "opening the job's data");
  computer_.FinishPrepare();
  EXPECT_EQ(session_->NotReady(), "");
  Open(kTimeline);
  ServePs();
  Lease(7, 1);
  ServePs();
  session_->Drain("SIGTERM");
  EXPECT_EQ(session_->NotReady(), "draining");
}

TEST_F(WorkerSessionTest, MayBeDestroyedWhileTheComputerIsBusy) {
  StartStep(7);
  session_.reset();
  computer_.FinishChunks();
  computer_.Finish();
  loop_.Advance(minutes(1));
  EXPECT_FALSE(end_.has_value());
}

}  // namespace
}  // namespace shoal
