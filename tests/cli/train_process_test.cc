// `shoal train` as a person starts it: the real program, with stand-ins (fake_daemon.cc) for the
// daemons.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/local_cluster/child_process.h"
#include "common/memory/memory_limit.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Clock = std::chrono::steady_clock;

constexpr auto kDeadline = std::chrono::seconds(120);

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string LastLines(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const size_t first = lines.size() > 20 ? lines.size() - 20 : 0;
  return absl::StrJoin(lines.begin() + first, lines.end(), "\n") + "\n";
}

// True once the process has ended, also as somebody else's zombie; false after the deadline.
bool AwaitEnd(pid_t pid) {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return errno == ESRCH;
  pollfd ended = {.fd = descriptor, .events = POLLIN};
  const int count = poll(&ended, 1, std::chrono::milliseconds(kDeadline).count());
  close(descriptor);
  return count == 1;
}

// True once SIGTERM waits for the process to heed it; false when it has ended, or after the
// deadline.
bool AwaitPendingSigterm(pid_t pid) {
  const Clock::time_point deadline = Clock::now() + kDeadline;
  while (Clock::now() < deadline) {
    const std::string status = Contents("/proc/" + std::to_string(pid) + "/status");
    const size_t pending = status.find("ShdPnd:");
    if (pending == std::string::npos || status.find("\nState:\tZ") != std::string::npos)
      return false;
    const std::string mask = status.substr(pending + 7, status.find('\n', pending) - pending - 7);
    if (std::stoull(mask, nullptr, 16) >> (SIGTERM - 1) & 1) return true;
    poll(nullptr, 0, /*timeout_ms=*/1);
  }
  return false;
}

class TrainProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ + "/bin");
    fs::create_directories(root_ + "/fake");
    // The daemons are looked for beside the program itself.
    fs::copy_file(SHOAL_BINARY, root_ + "/bin/shoal");
    for (const char* name : {"shoal-coordinator", "shoal-ps", "shoal-worker"}) {
      fs::create_symlink(FAKE_DAEMON_BINARY, root_ + "/bin/" + name);
    }
    std::ofstream(root_ + "/data") << "";
    WriteJob(/*batch_size=*/32);
  }

  void TearDown() override {
    if (HasFailure()) PrintLastWords();
    train_.reset();
  }

  // How `shoal train` ended, what it said, and the end of every task's log.
  void PrintLastWords() {
    const auto ended = train_ != nullptr ? train_->TryReap() : std::nullopt;
    std::cout << "shoal train: " << (ended.has_value() ? ended->ToString() : "still running")
              << "; it said:\n"
              << LastLines(output_);
    std::error_code no_logs;
    for (const auto& log : fs::directory_iterator(root_ + "/run/logs", no_logs)) {
      std::cout << log.path().filename().string() << ":\n" << LastLines(Contents(log.path()));
    }
  }

  // A Dense layer with this many inputs and units.
  void WriteJob(int batch_size, uint64_t units = 1) {
    std::ofstream(root_ + "/job.json")
        << R"({"name": "small", "loss": "mean_squared_error", "optimizer": "sgd", "steps": 9,
               "data": {"training": {"images": "data", "labels": "data"}},
               "model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
                 {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, )"
        << units << R"(]}}, {"class_name": "Dense", "config": {"name": "y", "units": )" << units
        << "}}]}}, \"batch_size\": " << batch_size << "}";
  }

  // The data of such a job: an example of zeros, as NPY, which is never read.
  void WriteArray(uint64_t units) {
    std::string header =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, " + std::to_string(units) + "), }";
    header.resize(117, ' ');
    std::ofstream(root_ + "/data", std::ios::binary)
        << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << "\n"
        << std::string(units, '\0');
  }

  // What a task is to do, a command a line.
  void Behave(const std::string& task, const std::string& commands) {
    std::ofstream(root_ + "/fake/" + task) << commands << "\n";
  }
  void Touch(const std::string& file) { std::ofstream(root_ + "/fake/" + file) << ""; }

  void Start(const std::vector<std::string>& flags = {}, std::vector<std::string> variables = {}) {
    variables.insert(variables.end(),
                     {"FAKE_DAEMON_DIR=" + root_ + "/fake", "TF_CONFIG=somebody else's"});
    std::vector<std::string> arguments = {"train", root_ + "/job.json", "--run_dir",
                                          root_ + "/run"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    auto train = ChildProcess::Spawn(
        {.program = root_ + "/bin/shoal", .arguments = arguments, .environment = variables});
    ASSERT_TRUE(train.ok()) << train.status();
    train_ = *std::move(train);
    output_.clear();
  }

  // Reads what `shoal train` prints until `text` is there; false at its end or after the deadline.
  bool AwaitOutput(const std::string& text) {
    const Clock::time_point deadline = Clock::now() + kDeadline;
    while (output_.find(text) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd readable = {.fd = train_->output(), .events = POLLIN};
      if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count())) != 1)
        return false;
      char buffer[4096];
      const ssize_t size = read(train_->output(), buffer, sizeof(buffer));
      if (size == 0) return false;
      if (size > 0) output_.append(buffer, size);
    }
    return true;
  }

  // The exit of `shoal train`, with all its output read.
  std::string AwaitExit() {
    EXPECT_FALSE(AwaitOutput("no such text ever comes"));
    if (!AwaitEnd(train_->pid())) return "still running";
    return train_->TryReap()->ToString();
  }

  pid_t Pid(const std::string& task) {
    return std::atoi(Contents(root_ + "/fake/" + task + ".pid").c_str());
  }

  // All tasks have begun: each says so in a warning, which is shown.
  static constexpr char kHello[] = "say 2026-11-21T13:00:00.123Z W x hello\n";
  void AwaitHello(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      ASSERT_TRUE(AwaitOutput("[" + name + "] 2026-11-21T13:00:00.123Z W x hello")) << output_;
    }
  }

  const TemporaryDirectory directory_;
  const std::string& root_ = directory_.path();
  std::unique_ptr<ChildProcess> train_;
  std::string output_;
};

TEST_F(TrainProcessTest, AJobThatIsDone) {
  Behave("chief-0",
         "write history.csv epoch,loss,accuracy,val_loss,val_accuracy,seconds,examples_per_second\n"
         "write history.csv 1,0.5,0.8,0.25,0.9,12.5,4800\n"
         "touch done\n"
         "exit 0");
  for (const char* task : {"ps-0", "worker-0", "worker-1"}) Behave(task, "await done\nexit 0");
  Start({"--threads", "3", "--seed", "17"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, HasSubstr("2 workers of 3 threads and 1 ps"));
  EXPECT_THAT(output_, HasSubstr("epoch 1/1: loss 0.5000, accuracy 0.8000, test loss 0.2500"));
  EXPECT_THAT(output_,
              HasSubstr("    1  0.5000    0.8000     0.2500         0.9000     12.5       4,800"));
  EXPECT_THAT(output_, AllOf(HasSubstr("/run/model"), HasSubstr("/run/checkpoints"),
                             HasSubstr("/run/history.csv"), HasSubstr("/run/logs")));
  EXPECT_THAT(Contents(root_ + "/run/job.json"), HasSubstr("\"seed\":17"));
  EXPECT_THAT(Contents(root_ + "/fake/chief-0.args"), HasSubstr("--run_dir=" + root_ + "/run\n"));
  EXPECT_THAT(Contents(root_ + "/fake/worker-1.args"), HasSubstr("--threads=3\n"));
  EXPECT_THAT(Contents(root_ + "/fake/worker-1.environ"), Not(HasSubstr("somebody else's")));
}

TEST_F(TrainProcessTest, WarningsAreShownAndEverythingIsLogged) {
  Behave("chief-0", "await said\nexit 0");
  Behave("ps-0",
         "say 2026-11-21T13:00:00.123Z I ps-0 quiet\n"
         "say 2026-11-21T13:00:00.123Z W ps-0 loud\ntouch said\nexit 0");
  Behave("worker-0", "await said\nexit 0");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, HasSubstr("[ps 0] 2026-11-21T13:00:00.123Z W ps-0 loud\n"));
  EXPECT_THAT(output_, Not(HasSubstr("quiet")));
  EXPECT_EQ(Contents(root_ + "/run/logs/ps-0.log"),
            "2026-11-21T13:00:00.123Z I ps-0 quiet\n2026-11-21T13:00:00.123Z W ps-0 loud\n");
}

TEST_F(TrainProcessTest, VerboseShowsEveryLine) {
  Behave("chief-0", "await said\nexit 0");
  Behave("ps-0", "say 2026-11-21T13:00:00.123Z I ps-0 quiet\ntouch said\nexit 0");
  Behave("worker-0", "await said\nexit 0");
  Start({"--workers", "1", "--verbose"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, HasSubstr("[ps 0] 2026-11-21T13:00:00.123Z I ps-0 quiet\n"));
}

TEST_F(TrainProcessTest, CtrlCStopsTheCoordinatorFirst) {
  Behave("chief-0", std::string(kHello) + "term\ntouch stopped\nexit 143");
  for (const char* task : {"ps-0", "worker-0", "worker-1"}) {
    Behave(task, std::string(kHello) + "term\nneed stopped\nexit 143");
  }
  Start();
  AwaitHello({"chief 0", "ps 0", "worker 0", "worker 1"});
  train_->Signal(SIGINT);
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("Stopping with a checkpoint"), HasSubstr("Stopped."),
                    HasSubstr("shoal train " + root_ + "/job.json --run_dir " + root_ + "/run")));
  for (const char* task : {"ps-0", "worker-0", "worker-1"}) {
    EXPECT_THAT(Contents(root_ + "/run/logs/" + task + ".log"), Not(HasSubstr("missing")));
    EXPECT_TRUE(AwaitEnd(Pid(task)));
  }
}

// As when Ctrl-C follows at once: its libraries are still being loaded.
TEST_F(TrainProcessTest, CtrlCBeforeTheCoordinatorHeedsSignalsIsAnOrderlyStop) {
  const std::string program = root_ + "/bin/shoal-coordinator", gate = root_ + "/fake/gate";
  fs::remove(program);
  std::ofstream(program) << "#!/bin/sh\n"
                            "echo $$ > \"$FAKE_DAEMON_DIR/chief-0.pid\"\n"
                            "echo '2026-11-21T13:00:00.123Z W x early' >&2\n"
                            "read line < \"$FAKE_DAEMON_DIR/gate\"\n"
                            "exec " FAKE_DAEMON_BINARY " \"$@\"\n";
  fs::permissions(program, fs::perms::owner_all);
  ASSERT_EQ(mkfifo(gate.c_str(), 0600), 0);
  const int opened = open(gate.c_str(), O_RDWR | O_CLOEXEC);
  Behave("chief-0", "term\ntouch stopped\nexit 143");
  for (const char* task : {"ps-0", "worker-0"}) Behave(task, "term 143");
  Start({"--workers", "1"});
  ASSERT_TRUE(AwaitOutput("[chief 0] 2026-11-21T13:00:00.123Z W x early")) << output_;
  train_->Signal(SIGINT);
  EXPECT_TRUE(AwaitPendingSigterm(Pid("chief-0")));
  ASSERT_EQ(write(opened, "\n", 1), 1);
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  EXPECT_THAT(output_, HasSubstr("Stopped."));
  EXPECT_TRUE(fs::exists(root_ + "/fake/stopped"));
  close(opened);
}

// It may be frozen, or wait for a disk.
TEST_F(TrainProcessTest, CtrlCDoesNotWaitForACoordinatorThatSaysNothing) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "wait");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  train_->Signal(SIGINT);
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("chief 0 has not answered for "),
                             HasSubstr("chief 0 does not stop and is killed"),
                             HasSubstr("There is no checkpoint yet")));
}

TEST_F(TrainProcessTest, ASecondSignalKillsAll) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "wait");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  train_->Signal(SIGTERM);
  ASSERT_TRUE(AwaitOutput("Stopping with a checkpoint")) << output_;
  train_->Signal(SIGTERM);
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) EXPECT_TRUE(AwaitEnd(Pid(task))) << task;
}

TEST_F(TrainProcessTest, NothingIsLeftWhenItIsKilled) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "wait");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  kill(train_->pid(), SIGKILL);
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) EXPECT_TRUE(AwaitEnd(Pid(task))) << task;
}

TEST_F(TrainProcessTest, WhoDiesIsNamedAndStartedAgainAsItWas) {
  for (const std::string task : {"chief-0", "ps-0", "worker-0"}) {
    SCOPED_TRACE(task);
    fs::remove_all(root_ + "/fake");
    fs::remove_all(root_ + "/run");
    fs::create_directories(root_ + "/fake");
    for (const char* each : {"chief-0", "ps-0", "worker-0"}) Behave(each, "await done\nexit 0");
    Behave(task + ".1", std::string(kHello) + "say the disk is on fire\nawait seen\nkill 9");
    Behave(task + ".2", "say all is well\ntouch done\nexit 0");
    Start({"--workers", "1"});
    const auto arguments = [&] { return Contents(root_ + "/fake/" + task + ".args"); };
    const auto environment = [&] { return Contents(root_ + "/fake/" + task + ".environ"); };
    const std::string name = std::string(task).replace(task.size() - 2, 1, " ");
    AwaitHello({name});
    const std::string first_arguments = arguments(), first_environment = environment();
    Touch("seen");
    EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
    EXPECT_THAT(output_,
                AllOf(HasSubstr(name + " (pid "), HasSubstr("killed by SIGKILL (signal 9)"),
                      HasSubstr("  the disk is on fire\nIts whole log: "),
                      HasSubstr("run/logs/" + task + ".log"), HasSubstr("(restart 1 of 10)")));
    EXPECT_EQ(arguments(), first_arguments);
    EXPECT_EQ(environment(), first_environment);
    EXPECT_THAT(Contents(root_ + "/run/logs/" + task + ".log"),
                HasSubstr("the disk is on fire\nall is well\n"));
  }
}

TEST_F(TrainProcessTest, ACrashLoopEndsTheJobWithItsRootCause) {
  Behave("chief-0", "term 143");
  Behave("ps-0.1", "say the disk is on fire\nkill 9");
  Behave("ps-0", "say no disk\nexit 138");
  Behave("worker-0", "term 143");
  Start({"--workers", "1", "--max_restarts", "2"});
  EXPECT_EQ(AwaitExit(), "exit code 138") << output_;
  EXPECT_THAT(output_, HasSubstr("Its last lines:\n  no disk\nIts whole log: "))
      << "of the second life, without those of the first";
  const std::string block = output_.substr(output_.find("The training failed: ps 0 (pid "));
  EXPECT_THAT(block, AllOf(HasSubstr("killed by SIGKILL (signal 9)"),
                           HasSubstr("Its last lines:\n  the disk is on fire\nIts whole log: "),
                           HasSubstr(root_ + "/run/logs/ps-0.log"),
                           HasSubstr("started again 2 times and does not stay up"),
                           HasSubstr("What failed, oldest first:")));
  EXPECT_THAT(block, HasSubstr(" after the start: ps 0 ended: exit code 138"));
  EXPECT_EQ(Contents(root_ + "/fake/ps-0.lives"), "3");
  EXPECT_TRUE(AwaitEnd(Pid("chief-0")));
  EXPECT_TRUE(AwaitEnd(Pid("worker-0")));
}

TEST_F(TrainProcessTest, WhatWouldFailAgainIsNotStartedAgain) {
  for (const int code : {64, 65, 77, 78}) {
    SCOPED_TRACE(code);
    fs::remove(root_ + "/fake/worker-1.lives");
    Behave("chief-0", "term 143");
    Behave("ps-0", "term 143");
    Behave("worker-0", "term 143");
    Behave("worker-1", "say no such file: images.idx\nexit " + std::to_string(code));
    Start();
    EXPECT_EQ(AwaitExit(), "exit code " + std::to_string(code)) << output_;
    EXPECT_THAT(output_, AllOf(HasSubstr("The training failed: worker 1"),
                               HasSubstr("  no such file: images.idx\n"),
                               HasSubstr("Starting it again would not help")));
    EXPECT_EQ(Contents(root_ + "/fake/worker-1.lives"), "1");
  }
}

TEST_F(TrainProcessTest, ACoordinatorThatSaysNothingIsSaidToHaveSaidNothing) {
  Behave("chief-0", "exit 65");
  Behave("ps-0", "term 143");
  Behave("worker-0", "term 143");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 65") << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("chief 0"), HasSubstr("exit code 65"), HasSubstr("It said nothing")));
}

TEST_F(TrainProcessTest, ADrainedWorkerIsNotStartedAgain) {
  Behave("chief-0", "await go_on\nexit 0");
  Behave("ps-0", "await go_on\nexit 0");
  Behave("worker-0", "exit 143");
  Behave("worker-1", "await go_on\nexit 0");
  Start();
  ASSERT_TRUE(AwaitOutput("worker 0 was drained and is not started again; the others go on"))
      << output_;
  Touch("go_on");
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_EQ(Contents(root_ + "/fake/worker-0.lives"), "1");
}

TEST_F(TrainProcessTest, ADrainedCoordinatorStopsTheJob) {
  Behave("chief-0", "exit 143");
  Behave("ps-0", "term 143");
  Behave("worker-0", "term 143");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  EXPECT_THAT(output_, HasSubstr("Stopped."));
}

TEST_F(TrainProcessTest, CtrlCBetweenTwoLivesOfTheCoordinatorEndsAll) {
  Behave("chief-0", "await hello\nexit 138");
  Behave("ps-0", "touch hello\nterm 143");
  Behave("worker-0", "term 143");
  Start({"--workers", "1", "--max_restarts", "1000"});
  ASSERT_TRUE(AwaitOutput("(restart 3 of 1000)")) << output_;
  train_->Signal(SIGINT);
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) EXPECT_TRUE(AwaitEnd(Pid(task))) << task;
}

TEST_F(TrainProcessTest, WithoutRestartsItGoesOnWhileAWorkerIsLeft) {
  Behave("chief-0", "await go_on\nexit 0");
  Behave("ps-0", "await go_on\nexit 0");
  Behave("worker-0", "exit 1");
  Behave("worker-1", "await go_on\nexit 0");
  Start({"--max_restarts", "0"});
  ASSERT_TRUE(AwaitOutput("worker 0 ended: exit code 1; the job goes on with 1 worker")) << output_;
  Touch("go_on");
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
}

TEST_F(TrainProcessTest, WithoutRestartsItFailsWithTheFirstOfItsWorkersThatDied) {
  Behave("chief-0", "term 143");
  Behave("ps-0", "term 143");
  Behave("worker-0", "await second\nexit 1");
  Behave("worker-1", "say out of memory\nkill 9");
  Start({"--max_restarts", "0"});
  ASSERT_TRUE(AwaitOutput("worker 1 ended: killed by SIGKILL")) << output_;
  Touch("second");
  EXPECT_EQ(AwaitExit(), "exit code 1") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("The training failed: worker 1"),
                             HasSubstr("  out of memory\n"), HasSubstr("No worker is left")));
}

TEST_F(TrainProcessTest, ARunDirectoryOfAnotherJobIsRefused) {
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
              AllOf(HasSubstr("$.batch_size: 32 there, 64 now"), HasSubstr("another --run_dir")));
}

TEST_F(TrainProcessTest, FieldsOfTheJobAreGivenByFlags) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  const std::vector<std::string> flags = {"--workers", "1",
                                          "--epochs",  "3",
                                          "--set",     "optimizer.config.learning_rate=0.5",
                                          "--set",     "checkpoint.keep=7"};
  Start(flags);
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("--epochs: $.epochs is 3; absent from the file\n"),
                             HasSubstr("--set: $.optimizer.config.learning_rate is 0.5; "),
                             HasSubstr("--set: $.checkpoint.keep is 7; ")));
  EXPECT_THAT(Contents(root_ + "/run/job.json"),
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
  EXPECT_THAT(Contents(root_ + "/run/job.json"), HasSubstr("\"epochs\":4"));
  Start({"--workers", "1", "--epochs", "4", "--batch_size", "32"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, HasSubstr("$.batch_size: 64 there, 32 now"));
}

TEST_F(TrainProcessTest, WrongFieldsNameTheirFlags) {
  Start({"--batch_size", "many", "--set", "bacth_size=3"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_,
              AllOf(HasSubstr("--batch_size: $.batch_size: is \"many\"; must be an integer"),
                    HasSubstr("--set: $.bacth_size: is not a known key; did you mean")));
  for (const char* text : {"epochs", "=3", "a..b=3"}) {
    Start({"--set", text});
    EXPECT_EQ(AwaitExit(), "exit code 64") << text;
    EXPECT_THAT(output_, HasSubstr("must be FIELD=VALUE, for example")) << text;
  }
}

TEST_F(TrainProcessTest, TwoDoNotShareARunDirectory) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "term 143");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  const auto first = std::move(train_);
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, HasSubstr("another `shoal train` uses this run directory"));
}

TEST_F(TrainProcessTest, EveryErrorOfTheJobIsShown) {
  std::ofstream(root_ + "/job.json") << R"({"name": "small", "batch_size": -1, "lost": "mse"})";
  Start();
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, AllOf(HasSubstr("$.batch_size"), HasSubstr("$.lost"), HasSubstr("$.model")));
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
  EXPECT_THAT(output_, AllOf(HasSubstr("shoal: this training needs "), HasSubstr("ps 0 "),
                             HasSubstr("8 workers "), HasSubstr("this machine has "),
                             HasSubstr("fewer --workers")));
  EXPECT_FALSE(fs::exists(root_ + "/run"));
}

// gRPC complains of what it is asked to trace.
TEST_F(TrainProcessTest, WhatItLogsItselfIsPrintedAsAllElse) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  Start({"--workers", "1"}, {"GRPC_TRACE=nonsense"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, HasSubstr("shoal: grpc: Unknown trace var: 'nonsense'\n"));
}

TEST_F(TrainProcessTest, AMissingDaemonIsNamed) {
  fs::remove(root_ + "/bin/shoal-ps");
  Behave("chief-0", "term 143");
  Start();
  EXPECT_EQ(AwaitExit(), "exit code 78");
  EXPECT_THAT(output_, HasSubstr("cannot start " + root_ + "/bin/shoal-ps"));
}

TEST_F(TrainProcessTest, WrongFlagsAreUsageErrors) {
  Start({"--workers", "0"});
  EXPECT_EQ(AwaitExit(), "exit code 64");
  EXPECT_THAT(output_, HasSubstr("--workers"));
}

}  // namespace
}  // namespace shoal
