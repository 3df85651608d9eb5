#include "worker/session/evaluator_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/crc32c.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "tests/common/metrics/sample_value.h"
#include "tests/worker/session/worker_session_fixture.h"
#include "worker/job/data_error.h"

namespace shoal {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// What was logged since CaptureStderr.
std::string CapturedLog() {
  FlushLog(minutes(1));
  return testing::internal::GetCapturedStderr();
}

class EvaluatorSessionTest : public testing::Test {
 protected:
  EvaluatorSessionTest() {
    computer_.test_batches = 2;
    session_ = std::make_unique<EvaluatorSession>(
        EvaluatorSession::Options{.loop = &loop_,
                                  .network = &network_,
                                  .computer = &computer_,
                                  .coordinator = "chief:1",
                                  .incarnation = 99,
                                  .host = "node",
                                  .pid = 12,
                                  .on_over = [this](const absl::Status& status) {
                                    EXPECT_FALSE(over_.has_value()) << "over twice";
                                    over_ = status;
                                  }});
    session_->Start();
  }
  FarEnd& coordinator() { return network_.Newest("chief:1"); }
  std::vector<proto::EvaluatorReport> TakeReports() {
    loop_.RunUntilIdle();
    return coordinator().Take<proto::EvaluatorReport>();
  }
  void Order(const proto::EvaluatorOrder& order) {
    coordinator().Send(order);
    loop_.RunUntilIdle();
  }
  void Welcome(const std::string& job = "the job") {
    proto::EvaluatorOrder order;
    order.mutable_welcome()->set_job(job);
    Order(order);
  }
  void GetReady() {
    Welcome();
    computer_.FinishPrepare();
    TakeReports();
    computer_.TakeCalls();
  }
  void Evaluate(uint64_t number) {
    proto::EvaluatorOrder order;
    order.mutable_evaluate()->set_evaluation(number);
    order.mutable_evaluate()->set_checkpoint("step-1");
    Order(order);
  }
  // Sends what is asked for, each value `value`; returns of which variables.
  std::vector<std::string> ServeValues(float value, uint64_t most = 1000) {
    std::vector<std::string> variables;
    for (const proto::EvaluatorReport& report : TakeReports()) {
      if (!report.has_values_wanted() || variables.size() == most) continue;
      const proto::ValuesWanted& wanted = report.values_wanted();
      variables.push_back(wanted.variable());
      proto::EvaluatorOrder order;
      order.mutable_values()->set_evaluation(wanted.evaluation());
      order.mutable_values()->set_variable(wanted.variable());
      order.mutable_values()->set_offset_bytes(wanted.offset_bytes());
      const std::vector<float> values(wanted.size_bytes() / sizeof(float), value);
      order.mutable_values()->set_values(reinterpret_cast<const char*>(values.data()),
                                         wanted.size_bytes());
      Order(order);
    }
    return variables;
  }
  std::vector<proto::CheckpointEvaluated> TakeResults() {
    std::vector<proto::CheckpointEvaluated> results;
    for (const proto::EvaluatorReport& report : TakeReports())
      if (report.has_evaluated()) results.push_back(report.evaluated());
    return results;
  }
  void FinishBatch(double loss_sum) {
    computer_.Finish(BatchOutcome{.examples = 16, .loss_sum = loss_sum, .metric_sums = {8, 1}});
    loop_.RunUntilIdle();
  }

  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  SmallModel model_;
  FakeComputer computer_{&model_};
  std::optional<absl::Status> over_;
  std::unique_ptr<EvaluatorSession> session_;
};

TEST_F(EvaluatorSessionTest, SaysHelloPreparesAndIsReady) {
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(coordinator().method(), kEvaluateMethod);
  EXPECT_EQ(reports[0].hello().version(), kVersion);
  EXPECT_EQ(reports[0].hello().incarnation(), 99u);
  Welcome();
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("prepare the job 1"));
  EXPECT_EQ(session_->CheckReady().code(), absl::StatusCode::kUnavailable);
  computer_.FinishPrepare();
  const auto ready = TakeReports();
  ASSERT_THAT(ready, SizeIs(1));
  EXPECT_EQ(ready[0].ready().test_examples(), 50u);
  EXPECT_EQ(ready[0].ready().job_fingerprint(), JobFingerprint("the job"));
  EXPECT_EQ(session_->CheckReady(), absl::OkStatus());
}

TEST_F(EvaluatorSessionTest, AsksForAllValuesComputesAllBatchesAndAddsThemUp) {
  GetReady();
  Evaluate(7);
  EXPECT_THAT(computer_.TakeCalls(), IsEmpty()) << "it has no values";
  EXPECT_THAT(ServeValues(3), ElementsAre("dense/kernel", "dense/bias", "norm/moving_mean"));
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 0"));
  EXPECT_THAT(computer_.expected_evaluations, ElementsAre(0, 1)) << "they are read ahead";
  for (const ModelLayout::Extent& extent : model_.layout.variables) {
    for (int64_t i = 0; i < extent.size; ++i)
      EXPECT_EQ(computer_.cut_parameters()[extent.offset + i], 3);
  }
  TakeReports();
  FinishBatch(32);
  loop_.Advance(seconds(1));
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1)) << "how far it is";
  EXPECT_EQ(reports[0].progress().batches_done(), 1u);
  EXPECT_EQ(reports[0].progress().batches(), 2u);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 1"));
  FinishBatch(0.5);
  const auto results = TakeResults();
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].evaluation(), 7u);
  EXPECT_EQ(results[0].examples(), 32u);
  EXPECT_EQ(results[0].loss_sum(), 32.5);
  EXPECT_THAT(results[0].metric_sums(), ElementsAre(16, 2));
}

TEST_F(EvaluatorSessionTest, AnotherOrderTakesThePlaceOfTheOneAtHand) {
  GetReady();
  Evaluate(1);
  ServeValues(3);
  EXPECT_THAT(computer_.TakeCalls(), ElementsAre("evaluate 0"));
  Evaluate(2);
  EXPECT_THAT(ServeValues(4), IsEmpty()) << "the values are being read";
  FinishBatch(32);
  EXPECT_THAT(TakeResults(), IsEmpty());
  Evaluate(3);
  EXPECT_THAT(ServeValues(5, /*most=*/1), SizeIs(1));
  Evaluate(4);
  EXPECT_THAT(ServeValues(4), SizeIs(3)) << "from the beginning";
  FinishBatch(1);
  FinishBatch(2);
  const auto results = TakeResults();
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].evaluation(), 4u);
  EXPECT_EQ(results[0].loss_sum(), 3);
}

// The next coordinator's numbers may be the same.
TEST_F(EvaluatorSessionTest, ABegunEvaluationIsVoidWithTheStream) {
  GetReady();
  Evaluate(1);
  ServeValues(3);
  coordinator().Close(absl::UnavailableError("connection reset"));
  loop_.Advance(seconds(1));
  Welcome();
  auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(2)) << "hello, ready";
  EXPECT_TRUE(reports[1].has_ready());
  Evaluate(1);
  EXPECT_THAT(ServeValues(4), IsEmpty()) << "the values are being read";
  FinishBatch(32);
  EXPECT_THAT(TakeReports(), Not(IsEmpty()));
  EXPECT_THAT(TakeResults(), IsEmpty());
}

// Its test set, loss and model may be others by then.
TEST_F(EvaluatorSessionTest, AnotherJobMeansAnotherStart) {
  GetReady();
  coordinator().Close(absl::UnavailableError("connection reset"));
  loop_.Advance(seconds(1));
  TakeReports();
  Welcome("another job");
  EXPECT_THAT(TakeReports(), IsEmpty()) << "it is not ready for that job";
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*over_)) << *over_;
  EXPECT_THAT(over_->message(), HasSubstr(ChecksumText(JobFingerprint("another job"))));
}

TEST_F(EvaluatorSessionTest, RejectedForItsJobItIsWorthARestart) {
  GetReady();
  proto::EvaluatorOrder order;
  order.mutable_rejected()->set_reason("computes another job");
  order.mutable_rejected()->set_other_job(true);
  Order(order);
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*over_)) << *over_;
}

TEST_F(EvaluatorSessionTest, WithoutACheckpointItWaitsAndSaysSo) {
  GetReady();
  testing::internal::CaptureStderr();
  loop_.Advance(seconds(4));
  EXPECT_THAT(CapturedLog(), Not(HasSubstr("waiting")));
  testing::internal::CaptureStderr();
  loop_.Advance(seconds(62));
  const std::string log = CapturedLog();
  EXPECT_THAT(log, AllOf(HasSubstr("chief:1 "), HasSubstr("for 5 s")));
  EXPECT_THAT(log, HasSubstr("for 65 s"));
  EXPECT_THAT(log, Not(HasSubstr("for 10 s")));
  EXPECT_FALSE(over_.has_value());
}

TEST_F(EvaluatorSessionTest, WithoutACoordinatorItWarnsAndEnds) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 12; ++i) {
    coordinator().Close(absl::UnavailableError("refused"));
    loop_.Advance(seconds(1));
  }
  EXPECT_THAT(CapturedLog(), HasSubstr("chief:1 for 5 s: refused"));
  EXPECT_EQ(SampleValue(*session_, "shoal_worker_connected"), 0);
  loop_.Advance(minutes(10));
  coordinator().Close(absl::UnavailableError("refused"));
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*over_)) << *over_;
}

TEST_F(EvaluatorSessionTest, EndsWithTheJob) {
  GetReady();
  proto::EvaluatorOrder order;
  order.mutable_job_done();
  Order(order);
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(over_->ok());
}

TEST_F(EvaluatorSessionTest, ToldToStopItSaysSoAndLeavesAtOnce) {
  GetReady();
  Evaluate(1);
  ServeValues(3);
  TakeReports();
  session_->Stop("stopped by a signal");
  const auto reports = TakeReports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].leaving().reason(), "stopped by a signal");
  coordinator().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsCancelled(*over_));
}

TEST_F(EvaluatorSessionTest, ACoordinatorThatDoesNotHearItIsNotWaitedFor) {
  GetReady();
  session_->Stop("a signal");
  loop_.Advance(seconds(2));
  ASSERT_TRUE(over_.has_value());
}

TEST_F(EvaluatorSessionTest, ALocalErrorIsReportedAndEndsIt) {
  Welcome();
  computer_.FinishPrepare(absl::NotFoundError("no such file: test.idx"));
  TakeReports();
  coordinator().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  ASSERT_TRUE(over_.has_value());
  EXPECT_EQ(over_->message(), "no such file: test.idx");
}

TEST_F(EvaluatorSessionTest, ABatchThatCannotBeComputedEndsIt) {
  GetReady();
  Evaluate(1);
  ServeValues(3);
  TakeReports();
  computer_.Finish(absl::DataLossError("test.idx: damaged"));
  const auto reports = TakeReports();
  EXPECT_EQ(reports.at(0).leaving().reason(), "test.idx: damaged");
  loop_.Advance(seconds(2));
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsDataLoss(*over_));
}

TEST_F(EvaluatorSessionTest, AnErrorOfDataQuotesNothingToAnUnknownCoordinator) {
  Welcome();
  const absl::Status error = DataError(absl::DataLossError("/etc/shadow: line 1: \"root\""));
  computer_.FinishPrepare(error);
  const auto reports = TakeReports();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().leaving().reason(), TextForCoordinator(error, /*may_quote=*/false));
}

// The names of data files can be any bytes. A report that is not UTF-8 cannot be read.
TEST_F(EvaluatorSessionTest, AFileWhoseNameIsNotUtf8IsNamedInItsReason) {
  Welcome();
  computer_.FinishPrepare(absl::DataLossError("a\xff.png: damaged"));
  const auto reports = TakeReports();
  ASSERT_FALSE(reports.empty());
  EXPECT_THAT(reports.back().leaving().reason(), HasSubstr("a\\xff.png"));
}

TEST_F(EvaluatorSessionTest, OneThatIsRejectedForNowTriesAgain) {
  proto::EvaluatorOrder order;
  order.mutable_rejected()->set_reason("there is an evaluator already");
  Order(order);
  coordinator().Close(absl::OkStatus());
  loop_.Advance(seconds(2));
  EXPECT_FALSE(over_.has_value());
  EXPECT_EQ(network_.CountOf("chief:1"), 2);
  order.mutable_rejected()->set_final(true);
  Order(order);
  ASSERT_TRUE(over_.has_value());
  EXPECT_THAT(over_->message(), HasSubstr("there is an evaluator already"));
}

// Promise 7.
TEST_F(EvaluatorSessionTest, NonsenseOfACoordinatorIsRejected) {
  Evaluate(1);  // before it is welcome
  GetReady();
  Evaluate(1);
  proto::EvaluatorOrder order;
  order.mutable_values()->set_evaluation(1);
  order.mutable_values()->set_variable("another");
  Order(order);
  order.mutable_values()->set_variable("dense/kernel");
  order.mutable_values()->set_offset_bytes(4);
  Order(order);
  EXPECT_FALSE(over_.has_value()) << "it has not asked for these";
  order.mutable_values()->set_offset_bytes(0);
  order.mutable_values()->set_values("abc");
  Order(order);
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(*over_)) << *over_;
  EXPECT_THAT(over_->message(), AllOf(HasSubstr("dense/kernel"), HasSubstr("320")));
}

TEST_F(EvaluatorSessionTest, ReopensTheStreamBetweenEvaluations) {
  GetReady();
  Evaluate(1);
  coordinator().SayOutdated();
  loop_.RunUntilIdle();
  EXPECT_FALSE(coordinator().finished().has_value()) << "the evaluation would begin anew";
  coordinator().Close(absl::UnavailableError("connection reset"));
  loop_.Advance(seconds(2));
  Welcome();
  coordinator().SayOutdated();
  loop_.RunUntilIdle();
  EXPECT_TRUE(coordinator().finished().has_value());
  coordinator().Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_EQ(network_.CountOf("chief:1"), 3);
  EXPECT_TRUE(TakeReports().at(0).has_hello());
}

}  // namespace
}  // namespace shoal
