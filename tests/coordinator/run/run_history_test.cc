#include "coordinator/run/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/log/logging.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/coordinator/run/full_disk.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Epochs of 2 steps, of 10 examples each.
class RunHistoryTest : public testing::Test {
 protected:
  RunHistoryTest() {
    std::filesystem::create_directory(RunPaths{directory_.path()}.checkpoints());
    StartAnew();
  }
  ~RunHistoryTest() override { loop_.RunUntilIdle(); }
  // Another coordinator.
  void StartAnew() {
    progress_ = std::make_unique<Progress>(std::vector<std::shared_ptr<const Metric>>());
    history_ = std::make_unique<RunHistory>(
        RunHistory::Options{.loop = &loop_,
                            .files = &disk_,
                            .progress = progress_.get(),
                            .paths = {directory_.path()},
                            .callbacks = {{.class_name = "ModelCheckpoint"}},
                            .wakeup = &wakeup_});
    history_->ReadEarlier();
  }
  void FinishEpoch(uint64_t epoch, double loss) {
    for (const uint64_t step : {2 * epoch, 2 * epoch + 1}) {
      progress_->StepDone({.step = step, .epoch = epoch, .examples = 10, .loss_sum = 10 * loss},
                          loop_.Now());
    }
    history_->CloseUpTo(2 * epoch + 2);
  }
  // The epochs in the file, with their losses; those on the test set behind them.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const proto::EpochResult& epoch : ReadHistory(Path(), &disk_).value_or(History()).epochs) {
      lines.push_back(absl::StrCat(epoch.epoch() + 1, ": ", epoch.loss()));
      if (epoch.has_test_loss()) absl::StrAppend(&lines.back(), " ", epoch.test_loss());
    }
    return lines;
  }
  std::string Path() const { return RunPaths{directory_.path()}.history(); }

  TemporaryDirectory directory_;
  FullDisk disk_;
  FakeLoop loop_;
  const StepPlan plan_{20, 10, 4, 0};
  int turns_ = 0;
  Wakeup wakeup_{&loop_, [this](Wakeup::Cause) { ++turns_; }};
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<RunHistory> history_;
};

TEST_F(RunHistoryTest, AnEpochIsWrittenWhenItsStepsAreDoneAndAgainWithItsTestResult) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  history_->CloseUpTo(3);
  EXPECT_EQ(history_->closed_epochs(), 1u) << "of the next a step is missing";
  EXPECT_THAT(history_->Owed(), HasSubstr(Path()));
  turns_ = 0;
  loop_.RunUntilIdle();
  EXPECT_THAT(history_->Owed(), IsEmpty());
  EXPECT_EQ(turns_, 1);
  EXPECT_THAT(Lines(), ElementsAre("1: 3"));
  EXPECT_FALSE(history_->IsEvaluated(0));
  history_->SetTestResult(0, 4, {}, 5);
  EXPECT_TRUE(history_->IsEvaluated(0));
  loop_.RunUntilIdle();
  EXPECT_THAT(Lines(), ElementsAre("1: 3 4"));
}

TEST_F(RunHistoryTest, NothingIsWrittenBeforeWhatEarlierCoordinatorsWroteIsKnown) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  loop_.RunUntilIdle();
  StartAnew();
  EXPECT_FALSE(history_->read());
  history_->Begin(plan_, 2, nullptr);
  FinishEpoch(1, 2);
  EXPECT_THAT(history_->Owed(), HasSubstr(Path()));
  loop_.RunUntilIdle();
  EXPECT_TRUE(history_->read());
  EXPECT_THAT(Lines(), ElementsAre("1: 3", "2: 2"));
}

// Two lead one after the other: what was read first may be old.
TEST_F(RunHistoryTest, OnlyTheLastReadCounts) {
  history_->ReadEarlier();
  loop_.RunUntilIdle();
  EXPECT_EQ(turns_, 1);
}

// As that of a run that is rejected, since its job has fewer epochs now.
TEST_F(RunHistoryTest, LinesReadBeforeTrainingStayInTheFile) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  loop_.RunUntilIdle();
  StartAnew();
  loop_.RunUntilIdle();
  EXPECT_THAT(Lines(), ElementsAre("1: 3"));
}

TEST_F(RunHistoryTest, AFailedReadIsRetriedAndEarlierLinesStay) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  loop_.RunUntilIdle();
  disk_.unreadable = Path();
  StartAnew();
  history_->Begin(plan_, 2, nullptr);
  FinishEpoch(1, 2);
  loop_.Advance(seconds(5));
  EXPECT_FALSE(history_->read());
  EXPECT_EQ(history_->last_read().code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(history_->Owed(), HasSubstr(Path()));
  disk_.unreadable.clear();
  EXPECT_THAT(Lines(), ElementsAre("1: 3")) << "it is still that of the coordinator before";
  loop_.Advance(seconds(1));
  EXPECT_TRUE(history_->read());
  EXPECT_TRUE(history_->last_read().ok());
  EXPECT_THAT(Lines(), ElementsAre("1: 3", "2: 2"));
}

TEST_F(RunHistoryTest, AFailedReadIsLoggedOnce) {
  loop_.RunUntilIdle();
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  disk_.unreadable = Path();
  for (int i = 0; i < 3; ++i) {
    history_->ReadVerdict();
    loop_.RunUntilIdle();
  }
  EXPECT_THAT(log, ElementsAre(HasSubstr(Path())));
  log.clear();
  history_->ReadEarlier();
  loop_.Advance(seconds(5));
  EXPECT_THAT(log, ElementsAre(HasSubstr(Path())));
  SendLogTo({});
}

TEST_F(RunHistoryTest, UnreadableEvaluationsAreLoggedOnceAndStopNothing) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  history_->SetTestResult(0, 4, {}, 5);
  loop_.RunUntilIdle();
  disk_.unreadable = RunPaths{directory_.path()}.evaluations();
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  int verdicts = 0;
  for (int i = 0; i < 3; ++i) {
    history_->RunCallbacks(
        0, [] { return true; }, [&] { ++verdicts; });
    loop_.RunUntilIdle();
  }
  SendLogTo({});
  EXPECT_EQ(verdicts, 3);
  EXPECT_THAT(log, ElementsAre(HasSubstr(disk_.unreadable)));
}

TEST_F(RunHistoryTest, EpochsThatDidNotHappenGoFromTheFileAtOnce) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  for (const uint64_t epoch : {0, 1, 2}) FinishEpoch(epoch, 3.0 - static_cast<double>(epoch));
  loop_.RunUntilIdle();
  EXPECT_THAT(Lines(), SizeIs(3));
  history_->Begin(plan_, 3, nullptr);
  EXPECT_EQ(history_->closed_epochs(), 1u);
  loop_.RunUntilIdle();
  EXPECT_THAT(Lines(), ElementsAre("1: 3"));
}

TEST_F(RunHistoryTest, AnEpochThatIsGoneOnWithIsOfAllItsSteps) {
  Manifest newest;
  newest.cut_step = 3;
  newest.epoch = 1;
  newest.epoch_position = 10;
  newest.total_steps = 8;
  newest.training_examples = 20;
  newest.epoch_sums = {.examples = 10, .loss = 50};
  loop_.RunUntilIdle();
  history_->Begin(plan_, 3, &newest);
  progress_->StepDone({.step = 3, .epoch = 1, .examples = 10, .loss_sum = 10}, loop_.Now());
  history_->CloseUpTo(4);
  EXPECT_EQ(progress_->history().at(1).loss(), 3) << "(50 + 10) / 20";
}

TEST_F(RunHistoryTest, AFullDiskIsToldAndTheFileWrittenWholeWhenItMayBe) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  disk_.full = true;
  FinishEpoch(0, 3);
  loop_.RunUntilIdle();
  EXPECT_THAT(history_->last_write().message(), HasSubstr("no space left"));
  EXPECT_THAT(Lines(), IsEmpty());
  disk_.full = false;
  FinishEpoch(1, 2);
  loop_.RunUntilIdle();
  EXPECT_TRUE(history_->last_write().ok());
  EXPECT_THAT(Lines(), ElementsAre("1: 3", "2: 2"));
}

TEST_F(RunHistoryTest, LinesThatAFullDiskRejectedAreWrittenUnasked) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  disk_.full = true;
  FinishEpoch(0, 3);
  loop_.Advance(seconds(60));
  disk_.full = false;
  loop_.Advance(seconds(10));
  EXPECT_THAT(Lines(), ElementsAre("1: 3"));
  EXPECT_TRUE(history_->last_write().ok());
}

TEST_F(RunHistoryTest, AVerdictNeedsTheFileAndTheEpochInIt) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  int verdicts = 0;
  const auto run_callbacks = [&] {
    history_->RunCallbacks(
        0, [] { return true; }, [&] { ++verdicts; });
    loop_.RunUntilIdle();
  };
  run_callbacks();
  EXPECT_EQ(verdicts, 0) << "it is being written";
  run_callbacks();
  EXPECT_EQ(verdicts, 0) << "it has no test result";
  history_->SetTestResult(0, 4, {}, 5);
  loop_.RunUntilIdle();
  run_callbacks();
  EXPECT_EQ(verdicts, 0) << "not again at once";
  loop_.Advance(seconds(6));
  run_callbacks();
  EXPECT_EQ(verdicts, 1);
  EXPECT_TRUE(history_->verdict().evaluated.contains(0));
}

TEST_F(RunHistoryTest, CallbacksThatAreNoLongerDueGiveNoVerdict) {
  loop_.RunUntilIdle();
  history_->Begin(plan_, 0, nullptr);
  FinishEpoch(0, 3);
  history_->SetTestResult(0, 4, {}, 5);
  loop_.RunUntilIdle();
  bool verdict = false;
  history_->RunCallbacks(
      0, [] { return false; }, [&] { verdict = true; });
  loop_.RunUntilIdle();
  EXPECT_FALSE(verdict);
}

}  // namespace
}  // namespace shoal
