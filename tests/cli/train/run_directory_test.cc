#include "cli/train/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "common/json/json_errors.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using State = RunDirectory::State;

Job SmallJob() {
  Job job;
  job.name = "small";
  job.model_json = "{}";
  job.loss = R"("mse")";
  job.batch_size = 32;
  job.steps = 100;
  return job;
}

class RunDirectoryTest : public testing::Test {
 protected:
  std::string path() const { return temporary_.path() + "/runs/small"; }

  std::unique_ptr<RunDirectory> Open() {
    auto run = RunDirectory::Open(path());
    EXPECT_TRUE(run.ok()) << run.status();
    return *std::move(run);
  }

  // As the coordinator writes one; total_steps decides whether it is the last.
  StoredCheckpoint WriteCheckpoint(uint64_t cut_step, uint64_t total_steps,
                                   uint64_t training_examples = 0, const Job& job = SmallJob()) {
    CheckpointStore store(path() + "/checkpoints");
    const auto directory = store.CreateDirectory(cut_step, 1);
    EXPECT_TRUE(directory.ok()) << directory.status();
    const CheckpointLayout layout = SmallLayout();
    EXPECT_TRUE(CreateCheckpointFiles(layout, *directory).ok());
    const auto parts = WriteElements(layout, *directory, 0, ~uint64_t{0}, cut_step);
    Manifest manifest = SmallManifest(/*timeline=*/1, cut_step);
    manifest.total_steps = total_steps;
    manifest.training_examples = training_examples;
    manifest.job_fingerprint = job.Fingerprint();
    std::map<std::string, std::string> texts = SmallTexts();
    texts["job.json"] = job.ResolvedText();
    auto stored = store.Commit(*directory, layout, parts, texts, manifest);
    EXPECT_TRUE(stored.ok()) << stored.status();
    return *std::move(stored);
  }

  TemporaryDirectory temporary_;
};

TEST_F(RunDirectoryTest, ANewOneIsFresh) {
  const auto run = Open();
  const auto decision = run->Decide(SmallJob());
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->state, State::kFresh);
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  EXPECT_TRUE(std::filesystem::is_directory(run->paths().logs()));
  EXPECT_EQ(FileContent(run->paths().job()), SmallJob().ResolvedText());
  EXPECT_EQ(run->Decide(SmallJob())->state, State::kFresh);
}

TEST_F(RunDirectoryTest, IsResumedFromItsNewestCheckpoint) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  WriteCheckpoint(50, 100);
  const StoredCheckpoint newest = WriteCheckpoint(75, 100);
  const auto decision = run->Decide(SmallJob());
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->state, State::kResumed);
  EXPECT_EQ(decision->step, 75);
  EXPECT_EQ(decision->checkpoint, newest.directory);
}

TEST_F(RunDirectoryTest, PassesOverADamagedCheckpointAndSaysSo) {
  const auto run = Open();
  WriteCheckpoint(50, 100);
  const StoredCheckpoint newest = WriteCheckpoint(75, 100);
  const std::string victim = newest.directory + "/" + newest.manifest.files.front().name;
  std::string bytes = FileContent(victim);
  bytes.back() ^= 1;
  WriteAll(victim, bytes);
  const auto decision = run->Decide(SmallJob());
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->step, 50);
  EXPECT_THAT(decision->problems, ElementsAre(AllOf(HasSubstr(newest.manifest.files.front().name),
                                                    EndsWith("; skipped"))));
}

TEST_F(RunDirectoryTest, OneInWhichNoCheckpointCanBeReadIsRejected) {
  const auto run = Open();
  WriteAll(WriteCheckpoint(50, 100).directory + "/manifest.json", "torn");
  const absl::Status status = run->Decide(SmallJob()).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss, {"manifest.json", "--run_dir"}));
}

// One that goes on is still shown, as it ends now.
TEST_F(RunDirectoryTest, TheEpochsThatAreDoneAreThoseWholeInTheCheckpoint) {
  const auto run = Open();
  const Manifest middle = WriteCheckpoint(50, 100, /*training_examples=*/65).manifest;
  EXPECT_EQ(run->Decide(SmallJob())->epochs_done, middle.epoch);
  const Manifest end = WriteCheckpoint(75, 100, middle.epoch_position).manifest;
  EXPECT_EQ(run->Decide(SmallJob())->epochs_done, end.epoch + 1);
}

TEST_F(RunDirectoryTest, ATrainedModelIsNotReplacedByATrainingFromStepZero) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  WriteAll(run->paths().history(), "epoch,loss\n1,0.5\n");
  EXPECT_EQ(run->Decide(SmallJob())->state, State::kFresh) << "curves alone are of a run that died";
  std::filesystem::create_directories(run->paths().model());
  WriteAll(run->paths().model() + "/model.safetensors", "");
  const absl::Status status = run->Decide(SmallJob()).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kFailedPrecondition,
                                {run->paths().model(), run->paths().history(), "--run_dir"}));
}

TEST_F(RunDirectoryTest, IsFinishedWithTheLastStepAndTheModel) {
  const auto run = Open();
  WriteCheckpoint(100, 100);
  // Stopped between the two: the coordinator still has the model to write.
  EXPECT_EQ(run->Decide(SmallJob())->state, State::kResumed);
  std::filesystem::create_directories(run->paths().model());
  WriteAll(run->paths().model() + "/model.safetensors", "");
  const auto decision = run->Decide(SmallJob());
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->state, State::kFinished);
  EXPECT_EQ(decision->total_steps, 100);
}

TEST_F(RunDirectoryTest, AFinishedJobThatIsToTrainLongerIsResumed) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  WriteCheckpoint(100, 100);
  std::filesystem::create_directories(run->paths().model());
  WriteAll(run->paths().model() + "/model.safetensors", "");
  Job longer = SmallJob();
  longer.steps = 200;
  for (int start = 0; start < 2; ++start) {  // the second after a first that came to nothing
    const auto decision = run->Decide(longer);
    ASSERT_TRUE(decision.ok()) << decision.status();
    EXPECT_EQ(decision->state, State::kResumed);
    EXPECT_EQ(decision->step, 100);
    ASSERT_TRUE(run->Prepare(longer).ok());
  }
}

Job StoppingJob(const std::string& patience) {
  Job job = SmallJob();
  job.optimizer = R"("sgd")";
  job.training = job.test = {.images = "/data/images", .labels = "/data/labels"};
  JsonErrors errors("");
  job.callbacks = ReadCallbacks(
      nlohmann::json::parse(R"([{"class_name": "EarlyStopping", "config": {"patience": )" +
                            patience + "}}]"),
      "$.callbacks", {{"val_loss", false}}, &errors);
  EXPECT_TRUE(errors.ToStatus().ok()) << errors.ToStatus();
  const auto resolved = ParseResolvedJob(job.ResolvedText(), "job");
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.value_or(job);
}

// A cluster that is started for it would end at once, without a word of advice.
TEST_F(RunDirectoryTest, EarlyStoppingEndsAJobHoweverLongItIsToBe) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(StoppingJob("1")).ok());
  // Of the second epoch, which has 64 examples.
  WriteCheckpoint(20, 100, /*training_examples=*/64, StoppingJob("1"));
  WriteAll(run->paths().history(), "epoch,loss,val_loss\n1,1,0.5\n2,1,0.75\n");
  std::filesystem::create_directories(run->paths().model());
  WriteAll(run->paths().model() + "/model.safetensors", "");
  const auto decision = run->Decide(StoppingJob("1"));
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->state, State::kFinished);
  EXPECT_EQ(decision->ended_after, 1u);
  Job longer = StoppingJob("1");
  longer.steps = 400;
  EXPECT_EQ(run->Decide(longer)->state, State::kFinished);
  EXPECT_EQ(run->Decide(longer)->ended_after, 1u);
  // What the model is made of, or whether there is more to do, may be another matter then.
  EXPECT_EQ(run->Decide(StoppingJob("2"))->state, State::kResumed);
  Job without = longer;
  without.callbacks.clear();
  EXPECT_EQ(run->Decide(without)->state, State::kResumed);
}

TEST_F(RunDirectoryTest, AnEndThatCannotBeReadIsAnErrorThatNamesTheFile) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(StoppingJob("1")).ok());
  WriteCheckpoint(20, 100, /*training_examples=*/64, StoppingJob("1"));
  WriteAll(run->paths().history(), "epoch,loss,val_loss\n1,1,0.5\n2,1,0.x\n");
  // Without a model, the coordinator has an end to write, and evaluates what it needs for that.
  EXPECT_EQ(run->Decide(StoppingJob("1"))->state, State::kResumed);
  std::filesystem::create_directories(run->paths().model());
  WriteAll(run->paths().model() + "/model.safetensors", "");
  EXPECT_THAT(run->Decide(StoppingJob("1")).status(),
              FailsWith(absl::StatusCode::kDataLoss,
                        {run->paths().history() + ":3: ", "\"0.x\"", "--run_dir"}));
  // Nothing is decided within an epoch.
  WriteCheckpoint(21, 100, /*training_examples=*/640, StoppingJob("1"));
  EXPECT_EQ(run->Decide(StoppingJob("1"))->state, State::kResumed);
}

TEST_F(RunDirectoryTest, RejectsAnotherJobAndNamesTheFields) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  Job changed = SmallJob();
  changed.batch_size = 64;
  EXPECT_EQ(run->Decide(changed)->state, State::kFresh) << "nothing was kept yet";
  WriteCheckpoint(50, 100);
  const auto decision = run->Decide(changed);
  EXPECT_THAT(decision.status(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                           {"$.batch_size: 32 ", " 64 ", "--run_dir"}));
}

TEST_F(RunDirectoryTest, RejectsAJobOfWhichMoreThanAllIsDone) {
  const auto run = Open();
  const StoredCheckpoint newest = WriteCheckpoint(75, 100);
  Job shorter = SmallJob();
  shorter.steps = 75;
  EXPECT_EQ(run->Decide(shorter)->state, State::kResumed);
  shorter.steps = 74;
  const auto too_few = run->Decide(shorter).status();
  EXPECT_THAT(too_few,
              FailsWith(absl::StatusCode::kFailedPrecondition, {newest.directory, "$.steps"}));
  // How many steps an epoch has nobody knows here, but which one the checkpoint's last step is in.
  shorter.steps = 0;
  shorter.epochs = newest.manifest.epoch + 1;
  EXPECT_EQ(run->Decide(shorter)->state, State::kResumed);
  shorter.epochs = newest.manifest.epoch;
  EXPECT_THAT(run->Decide(shorter).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {"$.epochs"}));
}

TEST_F(RunDirectoryTest, NothingThatWasMadeStaysBeforeItIsPrepared) {
  Open()->Decide(SmallJob()).IgnoreError();
  EXPECT_FALSE(std::filesystem::exists(path()));
  std::filesystem::create_directories(path());
  Open()->Decide(SmallJob()).IgnoreError();
  EXPECT_TRUE(std::filesystem::is_empty(path()));
  ASSERT_TRUE(Open()->Prepare(SmallJob()).ok());
  Open();
  EXPECT_TRUE(std::filesystem::exists(path() + "/.lock"));
}

TEST_F(RunDirectoryTest, IsHeldByOneAtATime) {
  auto first = Open();
  const auto second = RunDirectory::Open(path());
  EXPECT_THAT(second.status(), FailsWith(absl::StatusCode::kFailedPrecondition, {"`shoal train`"}));
  first.reset();
  EXPECT_TRUE(RunDirectory::Open(path()).ok());
}

// As on NFS without a lock server: the lease of the run guards it.
TEST_F(RunDirectoryTest, WithoutLocksOnTheFileSystemItGoesOnAndSaysSo) {
  for (const int error : {ENOLCK, ENOTSUP, ENOSYS, EINVAL}) {
    const auto run = RunDirectory::Open(path(), [error](int, int) {
      errno = error;
      return -1;
    });
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT((*run)->lock_problem(), HasSubstr(path() + "/.lock"));
    EXPECT_TRUE((*run)->Prepare(SmallJob()).ok());
  }
  EXPECT_EQ(Open()->lock_problem(), "");
}

TEST_F(RunDirectoryTest, LocksNoFileBehindALink) {
  std::filesystem::create_directories(path());
  std::filesystem::create_symlink(temporary_.path() + "/elsewhere", path() + "/.lock");
  const auto run = RunDirectory::Open(path());
  EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition) << run.status();
  EXPECT_FALSE(std::filesystem::exists(temporary_.path() + "/elsewhere"));
}

TEST_F(RunDirectoryTest, NamesAPathThatCannotBeADirectory) {
  WriteAll(temporary_.path() + "/file", "");
  const auto run = RunDirectory::Open(temporary_.path() + "/file/run");
  EXPECT_THAT(std::string(run.status().message()), HasSubstr(temporary_.path() + "/file "));
  EXPECT_EQ(RunDirectory::Open(temporary_.path() + "/file").status(), run.status());
}

// Peers are told of it in strings, which are UTF-8.
TEST_F(RunDirectoryTest, APathThatIsNotUtf8IsRejectedAndNotMade) {
  const std::string bad = path() + "/a\xff";
  const absl::Status status = RunDirectory::Open(bad).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument, {"a\\xff"}));
  EXPECT_FALSE(std::filesystem::exists(bad));
}

// Whoever leaves without a job removes its lock, which another may have opened by then.
TEST_F(RunDirectoryTest, AtMostOneThreadHoldsIt) {
  std::atomic<int> holders = 0, most = 0, opened = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3000; ++round) {
        const auto run = RunDirectory::Open(path());
        if (!run.ok()) continue;
        ++opened;
        if (++holders > 1) most = 2;
        std::this_thread::yield();
        --holders;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(opened, 4) << "it was not opened again";
  EXPECT_EQ(most, 0) << "two had it at once";
}

TEST_F(RunDirectoryTest, ANewOneIsItsOwnersAlone) {
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  using std::filesystem::perms;
  const auto bits = [this](const std::string& name) {
    return std::filesystem::status(path() + name).permissions();
  };
  EXPECT_EQ(bits(""), perms::owner_all);
  EXPECT_EQ(bits("/logs"), perms::owner_all);
  for (const char* name : {"/job.json", "/.lock"})
    EXPECT_EQ(bits(name), perms::owner_read | perms::owner_write) << name;
}

TEST_F(RunDirectoryTest, OneThatExistsDecidesWhoReads) {
  using std::filesystem::perms;
  const perms group = perms::group_read | perms::group_exec;
  std::filesystem::create_directories(path());
  std::filesystem::permissions(path(), perms::owner_all | group);
  const auto run = Open();
  ASSERT_TRUE(run->Prepare(SmallJob()).ok());
  const auto bits = [this](const std::string& name) {
    return std::filesystem::status(path() + name).permissions();
  };
  EXPECT_EQ(bits(""), perms::owner_all | group);
  EXPECT_EQ(bits("/logs"), perms::owner_all | group);
  for (const char* name : {"/job.json", "/.lock"}) {
    EXPECT_EQ(bits(name), perms::owner_read | perms::owner_write | perms::group_read) << name;
  }
}

}  // namespace
}  // namespace shoal
