#include "coordinator/evaluator/checkpoint_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/term.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/rpc/methods.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/run/full_disk.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

// The evaluation of a run's checkpoints; the test holds the evaluator's end of the stream.
class CheckpointEvaluationTest : public testing::Test {
 protected:
  static constexpr uint64_t kExamples = 50;  // of the test set
  static constexpr char kJobText[] = "{}";

  void Make(bool listed) {
    evaluation_ = std::make_unique<CheckpointEvaluation>(CheckpointEvaluation::Options{
        .loop = &loop_,
        .store = &store_,
        .layout = &layout_,
        .progress = &progress_,
        .paths = paths_,
        .job_text = kJobText,
        .listed = listed,
        .batch_size = 10,
        .timeout = seconds(60),
        .check_ready = [](const proto::EvaluatorReady&) { return absl::OkStatus(); },
        .may_be_evaluated = [](const StoredCheckpoint&) { return true; },
        .is_awaited = [](const StoredCheckpoint&) { return false; },
        .on_result = [](const StoredCheckpoint&, const CheckpointEvaluation::Options::Sums&) {},
        .wakeup = &wakeup_});
  }
  // Connects the evaluator and sends its hello.
  void Connect() {
    far_ = std::make_shared<FarEnd>(&loop_, "evaluator-host", kEvaluateMethod);
    far_->set_callbacks(evaluation_->Accept(far_->MakeStream()));
    proto::EvaluatorReport report;
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_incarnation(1);
    Send(report);
  }
  void GetReady() {
    Connect();
    proto::EvaluatorReport report;
    report.mutable_ready()->set_test_examples(kExamples);
    report.mutable_ready()->set_job_fingerprint(JobFingerprint(kJobText));
    Send(report);
    Orders();
  }
  void Send(const proto::EvaluatorReport& report) {
    far_->Send(report);
    loop_.RunUntilIdle();
  }
  // Returns the orders since the last call.
  std::vector<proto::EvaluatorOrder> Orders() { return far_->Take<proto::EvaluatorOrder>(); }

  const TemporaryDirectory directory_;
  const RunPaths paths_{directory_.path()};
  FullDisk disk_;
  CheckpointStore store_{paths_.checkpoints(), &disk_};
  const CheckpointLayout layout_ = SmallLayout();
  const Progress progress_{std::vector<std::shared_ptr<const Metric>>()};
  FakeLoop loop_;
  Wakeup wakeup_{&loop_, [](Wakeup::Cause) {}};
  std::shared_ptr<FarEnd> far_;
  std::unique_ptr<CheckpointEvaluation> evaluation_;
};

TEST_F(CheckpointEvaluationTest, AFailedReadIsRetriedAndEarlierLinesStay) {
  const StoredCheckpoint known = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  const StoredCheckpoint next = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 60);
  WriteAll(paths_.evaluations(),
           EvaluationsHeader({}) +
               FormatEvaluationLine({}, {.checkpoint = NameOf(known), .step = 40, .examples = 50}));
  disk_.unreadable = paths_.evaluations();
  Make(/*listed=*/false);
  evaluation_->Begin();
  GetReady();
  loop_.Advance(seconds(5));
  EXPECT_THAT(Orders(), IsEmpty());
  EXPECT_FALSE(evaluation_->Takes(1)) << "the workers evaluate meanwhile";
  EXPECT_FALSE(evaluation_->WillBring(next));
  disk_.unreadable.clear();
  loop_.Advance(seconds(1));
  EXPECT_TRUE(evaluation_->Takes(1));
  const auto orders = Orders();
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].evaluate().checkpoint(), NameOf(next)) << "the other one is known";
  proto::EvaluatorReport report;
  report.mutable_evaluated()->set_evaluation(orders[0].evaluate().evaluation());
  report.mutable_evaluated()->set_examples(kExamples);
  report.mutable_evaluated()->set_loss_sum(25);
  Send(report);
  EXPECT_THAT(Orders(), IsEmpty());
  const auto read = ReadEvaluations(paths_.evaluations());
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(read->results, SizeIs(2));
  EXPECT_EQ(read->results[0].checkpoint, NameOf(known));
  EXPECT_EQ(read->results[1].checkpoint, NameOf(next));
}

TEST_F(CheckpointEvaluationTest, TheEndWaitsAWhileForTheDisk) {
  disk_.unreadable = paths_.evaluations();
  Make(/*listed=*/false);
  evaluation_->Begin();
  GetReady();
  evaluation_->End("");
  loop_.Advance(seconds(8));
  EXPECT_THAT(Orders(), IsEmpty());
  loop_.Advance(seconds(4));
  const auto orders = Orders();
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_TRUE(orders[0].has_job_done());
}

TEST_F(CheckpointEvaluationTest, WithoutAnEvaluatorTheEndWaitsForNoDisk) {
  disk_.unreadable = paths_.evaluations();
  Make(/*listed=*/false);
  evaluation_->End("");
  loop_.RunUntilIdle();
  EXPECT_TRUE(evaluation_->ended());
}

TEST_F(CheckpointEvaluationTest, AListedEvaluatorThatIsStillStartingHearsOfTheFailure) {
  Make(/*listed=*/true);
  evaluation_->End("a loss is not finite");
  loop_.RunUntilIdle();
  EXPECT_FALSE(evaluation_->ended());
  Connect();
  const auto orders = Orders();
  ASSERT_THAT(orders, SizeIs(1)) << "no welcome";
  EXPECT_EQ(orders[0].job_done().failure(), "a loss is not finite");
  EXPECT_FALSE(evaluation_->ended()) << "it has not gone";
  far_->Close(absl::OkStatus());
  loop_.RunUntilIdle();
  EXPECT_TRUE(evaluation_->ended());
}

TEST_F(CheckpointEvaluationTest, TheEndWaitsAWhileForAListedEvaluator) {
  Make(/*listed=*/true);
  evaluation_->End("a loss is not finite");
  loop_.Advance(seconds(4));
  EXPECT_FALSE(evaluation_->ended());
  loop_.Advance(seconds(2));
  EXPECT_TRUE(evaluation_->ended());
}

TEST_F(CheckpointEvaluationTest, TheEndWaitsForNoOtherThatHasNotCome) {
  Make(/*listed=*/false);
  evaluation_->End("a loss is not finite");
  loop_.RunUntilIdle();
  EXPECT_TRUE(evaluation_->ended());
  Make(/*listed=*/true);
  evaluation_->End("");
  loop_.RunUntilIdle();
  EXPECT_TRUE(evaluation_->ended()) << "nothing is left to evaluate";
}

}  // namespace
}  // namespace shoal
