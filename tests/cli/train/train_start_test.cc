// `shoal train` rejects bad jobs before it starts anything, and names the fields of the job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/memory/memory_limit.h"
#include "tests/cli/train/train_process_fixture.h"
#include "tests/common/base/file_content.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TrainProcessTest, ARunDirectoryOfAnotherJobIsRejected) {
  Behave("chief-0", "exit 0");
  Behave("ps-0", "exit 0");
  Behave("worker-0", "exit 0");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  std::ofstream(root_ + "/run/history.csv") << "epoch\n";
  WriteJob(/*batch_size=*/64);
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_,
              AllOf(HasSubstr("$.batch_size: 32 "), HasSubstr(" 64 "), HasSubstr("--run_dir")));
}

TEST_F(TrainProcessTest, FieldsOfTheJobAreGivenByFlags) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  const std::vector<std::string> flags = {"--workers", "1",
                                          "--epochs",  "3",
                                          "--set",     "optimizer.config.learning_rate=0.5",
                                          "--set",     "checkpoint.keep=7"};
  Start(flags);
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("--epochs: $.epochs is 3; "),
                             HasSubstr("--set: $.optimizer.config.learning_rate is 0.5; "),
                             HasSubstr("--set: $.checkpoint.keep is 7; ")));
  EXPECT_THAT(FileContent(root_ + "/run/job.json"),
              AllOf(HasSubstr("\"epochs\":3"), HasSubstr("\"learning_rate\":0.5"),
                    HasSubstr("\"keep\":7"), Not(HasSubstr("\"steps\""))));
}

TEST_F(TrainProcessTest, ARunGoesOnWithOtherEpochsAndWithNothingElse) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  Start({"--workers", "1", "--epochs", "3", "--batch_size", "64"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  std::ofstream(root_ + "/run/history.csv") << "epoch\n";
  Start({"--workers", "1", "--epochs", "4", "--batch_size", "64"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(FileContent(root_ + "/run/job.json"), HasSubstr("\"epochs\":4"));
  Start({"--workers", "1", "--epochs", "4", "--batch_size", "32"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, AllOf(HasSubstr("$.batch_size: 64 "), HasSubstr(" 32 ")));
}

TEST_F(TrainProcessTest, WrongFieldsNameTheirFlags) {
  Start({"--batch_size", "many", "--set", "bacth_size=3"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, AllOf(HasSubstr("--batch_size: $.batch_size: "), HasSubstr("\"many\""),
                             HasSubstr("--set: $.bacth_size: ")));
  for (const char* text : {"epochs", "=3", "a..b=3"}) {
    Start({"--set", text});
    EXPECT_EQ(AwaitExit(), "exit code 64") << text;
    EXPECT_THAT(output_, HasSubstr("FIELD=VALUE")) << text;
  }
}

TEST_F(TrainProcessTest, OutputThatCannotBePrintedIsAFailure) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  redirection_ = ">/dev/full";
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 138");
  EXPECT_THAT(output_, HasSubstr("standard output"));
  redirection_ = ">&-";
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, HasSubstr("standard output"));
  Behave("chief-0", "exit 65");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 65") << "what is worse";
}

TEST_F(TrainProcessTest, ATrainedModelIsNotReplacedInSilence) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  std::ofstream(root_ + "/run/history.csv") << "epoch,loss\n1,0.5\n2,0.25\n";
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, HasSubstr("TF_CONFIG "));
  EXPECT_THAT(output_, AllOf(HasSubstr("at step 0 "), HasSubstr(" 2 epochs ")));
  fs::create_directories(root_ + "/run/model");
  std::ofstream(root_ + "/run/model/model.safetensors") << "values";
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, AllOf(HasSubstr(root_ + "/run/model\n"),
                             HasSubstr(root_ + "/run/history.csv\n"), HasSubstr("--run_dir")));
}

TEST_F(TrainProcessTest, TwoDoNotShareARunDirectory) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "term 143");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  const auto first = std::move(train_);
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, HasSubstr(root_ + "/run"));
}

TEST_F(TrainProcessTest, EveryErrorOfTheJobIsShown) {
  std::ofstream(root_ + "/job.json") << R"({"name": "small", "batch_size": -1, "lost": "mse"})";
  Start();
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, AllOf(HasSubstr("$.batch_size"), HasSubstr("$.lost"), HasSubstr("$.model")));
}

// As `shoal validate` finds them, before a process is started that would.
TEST_F(TrainProcessTest, DataThatDoNotSuitTheModelAreRejected) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  WriteArray(/*units=*/3);
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 78") << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr(root_ + "/data"), HasSubstr("(None, 3)"), HasSubstr("(None, 1)")));
  EXPECT_FALSE(fs::exists(root_ + "/run"));
}

TEST_F(TrainProcessTest, AGpuThatIsNotThereIsNamedBeforeAnythingStarts) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  Start({"--workers", "1", "--device", "cuda:0,cuda:999"});
  EXPECT_EQ(AwaitExit(), "exit code 78") << output_;
  EXPECT_THAT(output_, HasSubstr("shoal: --device: "));
  EXPECT_FALSE(fs::exists(root_ + "/fake/chief-0.pid"));
  EXPECT_FALSE(fs::exists(root_ + "/run"));
}

// A quarter of the memory is enough for each, not for all of them.
TEST_F(TrainProcessTest, TasksThatDoNotFitTogetherAreNotStarted) {
  const auto quarter = static_cast<double>(ReadSharedMemoryLimit().bytes / 4);
  const auto units = static_cast<uint64_t>(std::sqrt(quarter / 2 / sizeof(float)));
  WriteJob(/*batch_size=*/1, units);
  WriteArray(units);
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  fs::remove_all(root_ + "/run");
  Start({"--workers", "8"});
  EXPECT_EQ(AwaitExit(), "exit code 78") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("ps 0 "), HasSubstr("8 workers "), HasSubstr("--workers")));
  EXPECT_FALSE(fs::exists(root_ + "/run"));
}

TEST_F(TrainProcessTest, AMissingDaemonIsNamed) {
  fs::remove(root_ + "/bin/shoal-ps");
  Behave("chief-0", "term 143");
  Start();
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, HasSubstr(root_ + "/bin/shoal-ps"));
}

TEST_F(TrainProcessTest, WrongFlagsAreUsageErrors) {
  Start({"--workers", "0"});
  EXPECT_EQ(AwaitExit(), "exit code 64");
  EXPECT_THAT(output_, HasSubstr("--workers"));
}

}  // namespace
}  // namespace shoal
