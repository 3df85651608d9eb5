#include "common/run/run_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr uint64_t kStepsPerEpoch = 10;
constexpr uint64_t kExamples = 100;

proto::EpochResult Epoch(uint64_t epoch, double val_loss, double val_accuracy) {
  proto::EpochResult result;
  result.set_epoch(epoch);
  result.set_test_loss(val_loss);
  proto::MetricValue* accuracy = result.add_test_metrics();
  accuracy->set_name("accuracy");
  accuracy->set_value(val_accuracy);
  return result;
}

// Of a job of 20 epochs.
StoredCheckpoint At(uint64_t cut_step, uint64_t timeline = 1) {
  StoredCheckpoint stored;
  stored.directory = "/run/checkpoints/step-" + std::to_string(cut_step);
  Manifest& manifest = stored.manifest;
  manifest.timeline = timeline;
  manifest.cut_step = cut_step;
  manifest.total_steps = 20 * kStepsPerEpoch;
  manifest.epoch = (cut_step - 1) / kStepsPerEpoch;
  manifest.epoch_position =
      (cut_step - manifest.epoch * kStepsPerEpoch) * kExamples / kStepsPerEpoch;
  manifest.training_examples = manifest.test_examples = kExamples;
  return stored;
}

Callback EarlyStopping(uint64_t patience, bool restores_best = false) {
  return {.class_name = "EarlyStopping",
          .monitor = {.patience = patience},
          .restores_best = restores_best};
}

Callback BestAccuracy() {
  return {.class_name = "ModelCheckpoint", .monitor = {.figure = "val_accuracy", .maximize = true}};
}

TEST(RunVerdictTest, TheBestIsTheCheckpointOfTheEpochsEnd) {
  const RunVerdict verdict = JudgeRun({EarlyStopping(2), BestAccuracy()},
                                      {Epoch(0, 3, 0.5), Epoch(1, 1, 0.6), Epoch(2, 2, 0.7)},
                                      {At(31), At(30), At(29), At(25), At(20), At(15), At(10)});
  ASSERT_THAT(verdict.best, SizeIs(2));
  EXPECT_EQ(verdict.best[0].figure, "val_loss");
  EXPECT_EQ(verdict.best[0].epoch, 1u);
  EXPECT_EQ(verdict.best[0].value, 1);
  EXPECT_EQ(verdict.best[0].checkpoint->directory, At(20).directory);
  EXPECT_EQ(verdict.best[1].figure, "val_accuracy");
  EXPECT_EQ(verdict.best[1].epoch, 2u);
  EXPECT_EQ(verdict.best[1].checkpoint->directory, At(30).directory);
  EXPECT_EQ(verdict.ended_after, std::nullopt);
}

TEST(RunVerdictTest, OfTwoTimelinesTheNewerIsMeant) {
  StoredCheckpoint again = At(20, /*timeline=*/2);
  again.directory += "-again";
  const RunVerdict verdict =
      JudgeRun({EarlyStopping(2)}, {Epoch(0, 3, 0), Epoch(1, 1, 0)}, {again, At(20), At(10)});
  ASSERT_THAT(verdict.best, SizeIs(1));
  EXPECT_EQ(verdict.best[0].checkpoint->directory, again.directory);
}

CheckpointResult Evaluated(uint64_t cut_step, double loss, double accuracy) {
  return {.checkpoint = NameOf(At(cut_step)), .loss = loss, .metrics = {{"accuracy", accuracy}}};
}

TEST(RunVerdictTest, TheBestThatAnEvaluatorHasFoundMayLieWithinAnEpoch) {
  const std::vector<CheckpointResult> evaluated = {Evaluated(10, 3, 0.5), Evaluated(15, 1, 0.6),
                                                   Evaluated(20, 2, 0.9), Evaluated(5, 0, 1)};
  const std::vector<StoredCheckpoint> stored = {At(25), At(20), At(15), At(10)};
  const RunVerdict verdict = JudgeRun({}, {}, stored, evaluated);
  ASSERT_THAT(verdict.best, SizeIs(1)) << "that at step 5 is gone";
  EXPECT_EQ(verdict.best[0].figure, "val_loss");
  EXPECT_EQ(verdict.best[0].value, 1);
  EXPECT_EQ(verdict.best[0].step, 15u);
  EXPECT_EQ(verdict.best[0].checkpoint->directory, At(15).directory);
  EXPECT_EQ(verdict.best[0].callback, kEvaluator);
  EXPECT_THAT(DescribeBest(verdict.best[0]), HasSubstr("best val_loss: 1, at step 15, in "));

  const RunVerdict by_accuracy = JudgeRun({BestAccuracy()}, {Epoch(0, 3, 0.5)}, stored, evaluated);
  ASSERT_THAT(by_accuracy.best, SizeIs(2));
  EXPECT_EQ(by_accuracy.best[1].figure, "val_accuracy");
  EXPECT_EQ(by_accuracy.best[1].step, 20u);
  // Once is enough.
  EXPECT_THAT(JudgeRun({BestAccuracy()}, {Epoch(1, 2, 0.9)}, stored, evaluated).best, SizeIs(1));
}

TEST(RunVerdictTest, AnEpochThatWasNotEvaluatedSaysNothing) {
  proto::EpochResult unseen;
  unseen.set_epoch(1);
  unseen.set_loss(0.1);
  const RunVerdict verdict = JudgeRun({EarlyStopping(2)}, {Epoch(0, 3, 0), unseen}, {At(20)});
  ASSERT_THAT(verdict.best, SizeIs(1));
  EXPECT_EQ(verdict.best[0].epoch, 0u);
  EXPECT_FALSE(verdict.best[0].checkpoint.has_value());
  EXPECT_THAT(verdict.evaluated, ElementsAre(0));
}

TEST(RunVerdictTest, ARunEndsAtTheEpochThatEarlyStoppingMadeTheLast) {
  const std::vector<Callback> callbacks = {EarlyStopping(2)};
  const std::vector<proto::EpochResult> epochs = {Epoch(0, 1, 0), Epoch(1, 2, 0), Epoch(2, 3, 0)};
  const RunVerdict verdict = JudgeRun(callbacks, epochs, {At(30), At(20), At(10)});
  EXPECT_EQ(verdict.ended_after, 2u);
  EXPECT_FALSE(EndOfRun(callbacks, verdict, At(20)).has_value()) << "an epoch is lacking";
  EXPECT_FALSE(EndOfRun(callbacks, verdict, At(29)).has_value()) << "a step is lacking";
  const std::optional<RunEnd> end = EndOfRun(callbacks, verdict, At(30));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->result.directory, At(30).directory);
  EXPECT_THAT(DescribeVerdict(verdict),
              ElementsAre(AllOf(HasSubstr("epoch 3"), HasSubstr("val_loss"), HasSubstr("2 epochs")),
                          HasSubstr("best val_loss: 1, of epoch 1, in /run/checkpoints/step-10")));
}

TEST(RunVerdictTest, ATrainingWithoutAnyBestEndsWithAReasonToo) {
  const double nan = std::nan("");
  const RunVerdict verdict =
      JudgeRun({EarlyStopping(1)}, {Epoch(0, nan, nan), Epoch(1, nan, nan)}, {At(20)});
  EXPECT_EQ(verdict.ended_after, 1u);
  EXPECT_THAT(verdict.best, SizeIs(0));
  EXPECT_THAT(DescribeVerdict(verdict),
              ElementsAre(HasSubstr("after epoch 2, as val_loss"), HasSubstr("no epoch ")));
}

TEST(RunVerdictTest, AVerdictOfTwoCallbacksIsSaidOnce) {
  Callback checkpoint = EarlyStopping(9);
  checkpoint.class_name = "ModelCheckpoint";
  const RunVerdict verdict = JudgeRun({EarlyStopping(9), checkpoint, BestAccuracy()},
                                      {Epoch(0, 1, 0.5), Epoch(1, 2, 0.75)}, {At(20), At(10)});
  EXPECT_THAT(DescribeVerdict(verdict), ElementsAre(HasSubstr("best val_loss: 1, of epoch 1"),
                                                    HasSubstr("best val_accuracy: 0.75")));
}

TEST(RunVerdictTest, TheBestIsRestoredWhereThatIsAskedFor) {
  const std::vector<Callback> callbacks = {BestAccuracy(), EarlyStopping(2, true)};
  const RunVerdict verdict = JudgeRun(
      callbacks, {Epoch(0, 1, 0.1), Epoch(1, 2, 0.9), Epoch(2, 3, 0.2)}, {At(30), At(20), At(10)});
  const std::optional<RunEnd> end = EndOfRun(callbacks, verdict, At(30));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->last.directory, At(30).directory);
  EXPECT_EQ(end->result.directory, At(10).directory) << "by its own figure";
}

// Who is killed before the last result would else end without it.
TEST(RunVerdictTest, WithCallbacksTheLastEpochIsToBeEvaluated) {
  const std::vector<Callback> callbacks = {BestAccuracy()};
  std::vector<proto::EpochResult> epochs;
  for (uint64_t epoch = 0; epoch < 19; ++epoch) epochs.push_back(Epoch(epoch, 1, 0.5));
  EXPECT_FALSE(EndOfRun(callbacks, JudgeRun(callbacks, epochs, {At(200)}), At(200)).has_value());
  EXPECT_TRUE(EndOfRun({}, RunVerdict(), At(200)).has_value()) << "without, all steps are enough";
  epochs.push_back(Epoch(19, std::nan(""), std::nan("")));
  EXPECT_TRUE(EndOfRun(callbacks, JudgeRun(callbacks, epochs, {At(200)}), At(200)).has_value());
}

TEST(RunVerdictTest, WithoutCheckpointThereIsNoneToFind) {
  const TemporaryDirectory directory;
  const RunPaths run{directory.path()};
  EXPECT_EQ(BestOf(run).status().code(), absl::StatusCode::kNotFound);
}

// What cannot be read may hold the best epoch: nothing may be removed for it.
TEST(RunVerdictTest, AHistoryThatCannotBeReadIsAnError) {
  const TemporaryDirectory directory;
  const RunPaths run{directory.path()};
  std::ofstream(run.history()) << "epoch,loss,val_loss,seconds,examples_per_second\n1,x,1,1,1\n";
  EXPECT_THAT(
      std::string(ReadRunVerdict({EarlyStopping(1)}, run, RealFileSystem()).status().message()),
      HasSubstr("history.csv:2"));
}

TEST(RunVerdictTest, AnEndThatTheVerdictDecidesNeedsTheHistory) {
  const TemporaryDirectory directory;
  const RunPaths run{directory.path()};
  std::ofstream(run.history()) << "epoch,loss,val_loss,seconds,examples_per_second\n1,x,1,1,1\n";
  const auto read = [&run](const std::vector<Callback>& callbacks, uint64_t cut_step) {
    return ReadEndOfRun(callbacks, run, At(cut_step), RealFileSystem());
  };
  const absl::Status status = read({EarlyStopping(1)}, 200).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(run.history()));
  ASSERT_TRUE(read({EarlyStopping(1)}, 199).ok()) << "within an epoch no run ends";
  EXPECT_FALSE(read({EarlyStopping(1)}, 199)->has_value());
  ASSERT_TRUE(read({}, 200).ok()) << "without callbacks, all steps are enough";
  EXPECT_TRUE(read({}, 200)->has_value());
}

TEST(RunVerdictTest, UnreadableEvaluationsAreNamedAndHideNoCallback) {
  const TemporaryDirectory directory;
  const RunPaths run{directory.path()};
  std::ofstream(run.history()) << "epoch,loss,val_loss,seconds,examples_per_second\n1,1,1,1,1\n";
  const std::vector<Callback> callbacks = {EarlyStopping(1)};
  EXPECT_TRUE(ReadBestDirectories(callbacks, run, RealFileSystem()).ok());
  std::filesystem::create_directory(run.evaluations());
  const absl::StatusOr<RunVerdict> verdict = ReadRunVerdict(callbacks, run, RealFileSystem());
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_THAT(verdict->best, SizeIs(1));
  EXPECT_TRUE(absl::IsDataLoss(verdict->unread_evaluations));
  EXPECT_THAT(DescribeVerdict(*verdict),
              ElementsAre(HasSubstr("val_loss"), HasSubstr(run.evaluations())));
  EXPECT_FALSE(ReadBestDirectories(callbacks, run, RealFileSystem()).ok())
      << "the evaluator's best may not be removed";
}

TEST(RunVerdictTest, ADamagedEvaluationMayBeTheBestAndIsNamed) {
  const TemporaryDirectory directory;
  const RunPaths run{directory.path()};
  std::ofstream(run.history()) << "epoch,loss,val_loss,seconds,examples_per_second\n1,1,1,1,1\n";
  const std::string whole = "20,2,0.5,1,50,step-20\n";
  for (const std::vector<Callback>& callbacks :
       {std::vector<Callback>(), std::vector<Callback>{EarlyStopping(1)}}) {
    std::ofstream(run.evaluations()) << EvaluationsHeader({}) << whole;
    EXPECT_TRUE(ReadBestDirectories(callbacks, run, RealFileSystem()).ok());
    std::ofstream(run.evaluations()) << EvaluationsHeader({}) << whole << "10,1,0.x,1,50,step-10\n";
    const absl::StatusOr<RunVerdict> verdict = ReadRunVerdict(callbacks, run, RealFileSystem());
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_TRUE(absl::IsDataLoss(verdict->unread_evaluations));
    const absl::Status best = ReadBestDirectories(callbacks, run, RealFileSystem()).status();
    EXPECT_TRUE(absl::IsDataLoss(best));
    EXPECT_THAT(std::string(best.message()),
                AllOf(HasSubstr(run.evaluations() + ":3: "), HasSubstr("\"0.x\"")));
  }
}

}  // namespace
}  // namespace shoal
