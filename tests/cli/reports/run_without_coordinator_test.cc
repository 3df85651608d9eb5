#include "cli/reports/run_without_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "cli/display/status_report.h"
#include "common/job/job.h"
#include "common/run/run_outcome.h"
#include "common/run/run_paths.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/common/job/job_files.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class RunWithoutCoordinatorTest : public JobFilesTest {
 protected:
  void SetUp() override { ReadJob(); }

  // The job, with these fields too.
  void ReadJob(const nlohmann::json& fields = nlohmann::json::object()) {
    nlohmann::json job = MinimalJob();
    job["data"]["test"] = job["data"]["training"];
    job["epochs"] = 2;
    job.update(fields);
    const auto read = LoadJob(WriteJob(job), /*check_data=*/false);
    ASSERT_TRUE(read.ok()) << read.status();
    job_ = *read;
  }

  // The run is at the end of its second epoch.
  void WriteCheckpoint(uint64_t cut_step, uint64_t total_steps) {
    CheckpointStore store(run_.checkpoints());
    const auto directory = store.CreateDirectory(cut_step, 1);
    ASSERT_TRUE(directory.ok()) << directory.status();
    const CheckpointLayout layout = SmallLayout();
    ASSERT_TRUE(CreateCheckpointFiles(layout, *directory).ok());
    const auto parts = WriteElements(layout, *directory, 0, ~uint64_t{0}, cut_step);
    Manifest manifest = SmallManifest(/*timeline=*/1, cut_step);
    manifest.job_name = job_.name;
    manifest.total_steps = total_steps;
    manifest.epoch = 1;
    manifest.training_examples = manifest.epoch_position = 64;
    manifest.test_examples = 8;
    manifest.job_fingerprint = job_.Fingerprint();
    std::map<std::string, std::string> texts = SmallTexts();
    texts["job.json"] = job_.ResolvedText();
    const auto stored = store.Commit(*directory, layout, parts, texts, manifest);
    ASSERT_TRUE(stored.ok()) << stored.status();
  }
  // Writes a run of five epochs that early stopping has ended after two.
  void WriteEarlyStop() {
    ReadJob({{"epochs", 5},
             {"callbacks",
              {{{"class_name", "EarlyStopping"},
                {"config", {{"monitor", "val_loss"}, {"patience", 1}}}}}}});
    WriteCheckpoint(100, 250);
    WriteModel();
  }
  void WriteModel() const {
    std::filesystem::create_directories(run_.model());
    WriteAll(run_.model() + "/model.safetensors", "values");
    WriteAll(run_.history(),
             "epoch,loss,val_loss,seconds,examples_per_second,examples\n"
             "1,0.5,0.6,1,64,64\n2,0.25,0.7,1,64,64\n");
  }
  std::optional<proto::StatusReply> Finished() const {
    const auto finished = ReadFinishedRun(run_.directory);
    EXPECT_TRUE(finished.ok()) << finished.status();
    return finished.value_or(std::nullopt);
  }
  std::string Describe() const { return DescribeRunWithoutCoordinator(run_.directory); }

  const RunPaths run_{temporary_ / "run"};
  Job job_;
};

TEST_F(RunWithoutCoordinatorTest, AFinishedRunIsReportedWithItsEnd) {
  WriteCheckpoint(100, 100);
  WriteModel();
  const auto status = Finished();
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(
      FormatStatusReport(*status),
      AllOf(HasSubstr("tiny, finished (shoal "), HasSubstr("epoch 2/2  step 100/100  loss 0.25"),
            HasSubstr("\ncheckpoint  step 100, "), HasSubstr("\nrun         " + run_.directory),
            HasSubstr("\nmodel       " + run_.model() + "\n"), HasSubstr("\n    2  0.25"),
            Not(HasSubstr("up ")), Not(HasSubstr("staleness"))));
  EXPECT_THAT(Describe(), EndsWith(": shoal status " + run_.directory));
}

TEST_F(RunWithoutCoordinatorTest, OneThatEarlyStoppingHasEndedIsFinished) {
  WriteEarlyStop();
  const auto status = Finished();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->ended_after_epoch(), 1u);
  EXPECT_THAT(FormatStatusReport(*status),
              AllOf(HasSubstr("epoch 2/5  step 100/250"), HasSubstr("early stop  after epoch 2"),
                    HasSubstr("best        val_loss 0.6000, epoch 1")));
}

TEST_F(RunWithoutCoordinatorTest, AnUnfinishedRunIsReportedWithTheResumeCommand) {
  EXPECT_FALSE(Finished().has_value());
  EXPECT_THAT(Describe(), EndsWith(": shoal checkpoint list " + run_.directory));
  WriteCheckpoint(40, 100);
  WriteModel();  // of an earlier end
  EXPECT_FALSE(Finished().has_value());
  EXPECT_THAT(Describe(), AllOf(HasSubstr(" 40 of 100 steps"), HasSubstr(" step 40:\n"),
                                EndsWith(" --run_dir=" + run_.directory)));
  WriteAll(run_.job(), job_.ResolvedText());
  EXPECT_THAT(Describe(), EndsWith("\n  shoal train " + run_.directory + "/job.json --run_dir " +
                                   run_.directory));
  std::filesystem::create_directory(run_.tls());  // as of `shoal train --tls`
  EXPECT_THAT(Describe(), EndsWith(" --run_dir " + run_.directory + " --tls"));
}

TEST_F(RunWithoutCoordinatorTest, AFailedRunIsReportedWithItsCause) {
  EXPECT_FALSE(ReadFailedRun(run_.directory).has_value());
  std::filesystem::create_directories(run_.directory);
  ASSERT_TRUE(WriteRunOutcome(run_, {65, "not finite: lower the learning rate"}).ok());
  auto status = ReadFailedRun(run_.directory);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->phase(), "failed");
  EXPECT_EQ(status->error(), "not finite: lower the learning rate");
  EXPECT_EQ(status->exit_code(), 65u);
  EXPECT_EQ(status->steps_done(), 0u);
  WriteCheckpoint(40, 100);
  WriteModel();
  status = ReadFailedRun(run_.directory);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->job_name(), job_.name);
  EXPECT_EQ(status->steps_done(), 40u);
  EXPECT_EQ(status->total_steps(), 100u);
  EXPECT_EQ(status->history_size(), 2);
  EXPECT_EQ(status->last_checkpoint().step(), 40u);
  const auto json = nlohmann::json::parse(StatusToJson(*status));
  EXPECT_EQ(json["/phase"_json_pointer], "failed");
  EXPECT_EQ(json["/exit_code"_json_pointer], 65);
  EXPECT_EQ(json["/error"_json_pointer], "not finite: lower the learning rate");
  EXPECT_THAT(Describe(), AllOf(HasSubstr("65"), HasSubstr("lower the learning rate"),
                                Not(HasSubstr("shoal train"))));
}

TEST_F(RunWithoutCoordinatorTest, OneThatWasStoppedHasNotFailed) {
  WriteCheckpoint(40, 100);
  for (const int code : {0, 143}) {
    ASSERT_TRUE(WriteRunOutcome(run_, {code, "stopped"}).ok());
    EXPECT_FALSE(ReadFailedRun(run_.directory).has_value()) << code;
  }
  EXPECT_THAT(Describe(), HasSubstr("--run_dir=" + run_.directory));
}

TEST_F(RunWithoutCoordinatorTest, OneThatIsToTrainLongerIsNotFinished) {
  WriteCheckpoint(100, 100);
  WriteModel();
  WriteAll(run_.job(), job_.ResolvedText());
  EXPECT_TRUE(Finished().has_value());
  job_.epochs = 3;
  WriteAll(run_.job(), job_.ResolvedText());
  EXPECT_FALSE(Finished().has_value());
}

TEST_F(RunWithoutCoordinatorTest, AnEndThatCannotBeReadIsAnErrorThatNamesTheFile) {
  WriteEarlyStop();
  WriteAll(run_.history(), "epoch,loss,val_loss\n1,0.5,0.6\n2,0.25,0.x\n");
  const absl::Status status = ReadFinishedRun(run_.directory).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss, {run_.history() + ":3: ", "\"0.x\""}));
  EXPECT_THAT(Describe(), AllOf(HasSubstr(run_.history() + ":3: "), Not(HasSubstr("shoal train"))));
  // The job of the newest checkpoint says which callbacks decide.
  const auto stored = CheckpointStore(run_.checkpoints()).List(nullptr);
  ASSERT_TRUE(stored.ok()) << stored.status();
  const std::string job = stored->front().directory + "/job.json";
  WriteAll(job, "{");
  EXPECT_THAT(ReadFinishedRun(run_.directory).status(),
              FailsWith(absl::StatusCode::kDataLoss, {job}));
}

TEST_F(RunWithoutCoordinatorTest, AFinishedRunWithADamagedEvaluationIsFinishedAndNamesIt) {
  WriteCheckpoint(100, 100);
  WriteModel();
  WriteAll(run_.evaluations(),
           "step,epoch,val_loss,seconds,examples,checkpoint\n1,1,x,1,8,step-1\n");
  const auto status = Finished();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->phase(), "finished");
  EXPECT_THAT(status->error(), HasSubstr(run_.evaluations() + ":2: "));
}

}  // namespace
}  // namespace shoal
