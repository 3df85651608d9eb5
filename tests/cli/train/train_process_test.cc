// `shoal train` as a person starts it: the real program, with stand-ins (fake_daemon.cc) for the
// daemons.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/train/train_process_fixture.h"
#include "tests/common/base/file_content.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_THAT(FileContent(root_ + "/run/job.json"), HasSubstr("\"seed\":17"));
  EXPECT_THAT(FileContent(root_ + "/fake/chief-0.args"),
              HasSubstr("--run_dir=" + root_ + "/run\n"));
  EXPECT_THAT(FileContent(root_ + "/fake/worker-1.args"), HasSubstr("--threads=3\n"));
  EXPECT_THAT(FileContent(root_ + "/fake/worker-1.environ"), Not(HasSubstr("somebody else's")));
}

TEST_F(TrainProcessTest, WarningsAreShownAndEverythingIsLogged) {
  for (const char* task : {"chief-0", "worker-0"}) Behave(task, "await seen\nexit 0");
  Behave("ps-0",
         "say 2026-11-21T13:00:00.123Z I ps-0 quiet\n"
         "say 2026-11-21T13:00:00.123Z W ps-0 loud\nawait seen\nexit 0");
  Start({"--workers", "1"});
  ASSERT_TRUE(AwaitOutput("[ps 0] 2026-11-21T13:00:00.123Z W ps-0 loud\n")) << output_;
  Touch("seen");
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, Not(HasSubstr("quiet")));
  EXPECT_EQ(FileContent(root_ + "/run/logs/ps-0.log"),
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
  std::vector<size_t> places;
  for (const std::string& said :
       {std::string("Stopping with a checkpoint"), std::string("There is no checkpoint yet"),
        std::string("Stopped."), "shoal train " + root_ + "/job.json --run_dir " + root_ + "/run"})
    places.push_back(output_.find(said));
  EXPECT_NE(places.back(), std::string::npos) << output_;
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end())) << output_;
  for (const char* task : {"ps-0", "worker-0", "worker-1"}) {
    EXPECT_THAT(FileContent(root_ + "/run/logs/" + task + ".log"), Not(HasSubstr("missing")));
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
  EXPECT_THAT(output_, AllOf(HasSubstr("chief 0 "), HasSubstr("There is no checkpoint yet")));
}

TEST_F(TrainProcessTest, ASecondSignalKillsAll) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "wait");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  train_->Signal(SIGTERM);
  ASSERT_TRUE(AwaitOutput("Stopping with a checkpoint")) << output_;
  // Too soon, it is the first one told twice. It may end before its words are read.
  while (!AwaitOutput("Killing all processes", std::chrono::milliseconds(10)) &&
         !train_->TryReap().has_value()) {
    train_->Signal(SIGTERM);
  }
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  EXPECT_THAT(output_, HasSubstr("Killing all processes"));
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) EXPECT_TRUE(AwaitEnd(Pid(task))) << task;
}

// As timeout(1) does: it signals its child, then the child's process group.
TEST_F(TrainProcessTest, AStopThatIsToldTwiceIsAnOrderlyOne) {
  Behave("chief-0", std::string(kHello) + "term\ntouch stopped\nexit 143");
  for (const char* task : {"ps-0", "worker-0"}) Behave(task, std::string(kHello) + "term 143");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  // Two that are equal, and pending, would come as one.
  for (const int signal : {SIGSTOP, SIGTERM, SIGINT, SIGCONT}) train_->Signal(signal);
  EXPECT_EQ(AwaitExit(), "exit code 143") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("Stopped."), Not(HasSubstr("Killing all processes"))));
  EXPECT_TRUE(fs::exists(root_ + "/fake/stopped"));
}

// As under nohup.
TEST_F(TrainProcessTest, AHangupThatIsIgnoredDoesNotStop) {
  Behave("chief-0", std::string(kHello) + "await go\nexit 0");
  for (const char* task : {"ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "await go\nexit 0");
  std::signal(SIGHUP, SIG_IGN);
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  train_->Signal(SIGHUP);
  Touch("go");
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, Not(HasSubstr("Stopping")));
}

TEST_F(TrainProcessTest, NothingIsLeftWhenItIsKilled) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "wait");
  Start({"--workers", "1"});
  AwaitHello({"chief 0", "ps 0", "worker 0"});
  kill(train_->pid(), SIGKILL);
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) EXPECT_TRUE(AwaitEnd(Pid(task))) << task;
}

TEST_F(TrainProcessTest, ADeadTaskIsNamedAndRestartedAsItWas) {
  for (const std::string task : {"chief-0", "ps-0", "worker-0"}) {
    SCOPED_TRACE(task);
    fs::remove_all(root_ + "/fake");
    fs::remove_all(root_ + "/run");
    fs::create_directories(root_ + "/fake");
    for (const char* each : {"chief-0", "ps-0", "worker-0"}) Behave(each, "await done\nexit 0");
    Behave(task + ".1", std::string(kHello) + "say the disk is on fire\nawait seen\nkill 9");
    Behave(task + ".2", "say all is well\ntouch done\nexit 0");
    Start({"--workers", "1"});
    const auto arguments = [&] { return FileContent(root_ + "/fake/" + task + ".args"); };
    const auto environment = [&] { return FileContent(root_ + "/fake/" + task + ".environ"); };
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
    EXPECT_THAT(FileContent(root_ + "/run/logs/" + task + ".log"),
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
                           HasSubstr(root_ + "/run/logs/ps-0.log"), HasSubstr(" 2 times "),
                           HasSubstr("oldest first")));
  EXPECT_THAT(block, HasSubstr(" after the start: ps 0 ended: exit code 138"));
  EXPECT_EQ(FileContent(root_ + "/fake/ps-0.lives"), "3");
  EXPECT_TRUE(AwaitEnd(Pid("chief-0")));
  EXPECT_TRUE(AwaitEnd(Pid("worker-0")));
}

TEST_F(TrainProcessTest, ATaskThatWouldFailAgainIsNotRestarted) {
  for (const int code : {64, 65, 77, 78}) {
    SCOPED_TRACE(code);
    fs::remove(root_ + "/fake/worker-1.lives");
    Behave("chief-0", "term 143");
    Behave("ps-0", "term 143");
    Behave("worker-0", "term 143");
    Behave("worker-1", "say no such file: images.idx\nexit " + std::to_string(code));
    Start();
    EXPECT_EQ(AwaitExit(), "exit code " + std::to_string(code)) << output_;
    EXPECT_THAT(output_, AllOf(HasSubstr("worker 1"), HasSubstr("  no such file: images.idx\n")));
    EXPECT_EQ(FileContent(root_ + "/fake/worker-1.lives"), "1");
  }
}

// Once it has failed, what the others say of that is no news.
TEST_F(TrainProcessTest, TheRunDirectoryKeepsWhichTaskFailedAndWhy) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"})
    Behave(task, std::string(kHello) + "term 143");
  Behave("worker-1",
         "say 2026-11-21T13:00:00.123Z E worker-1 images: damaged exit_code=65\nexit 65");
  Start();
  EXPECT_EQ(AwaitExit(), "exit code 65") << output_;
  const auto end = nlohmann::json::parse(FileContent(root_ + "/run/end.json"));
  EXPECT_EQ(end["/exit_code"_json_pointer], 65);
  EXPECT_THAT(end["/cause"_json_pointer].get<std::string>(),
              AllOf(HasSubstr("worker 1"), HasSubstr("images: damaged"), Not(HasSubstr("2026-"))));
}

// It has kept its end itself, if it led the run.
TEST_F(TrainProcessTest, TheEndThatTheCoordinatorKeptStays) {
  Behave("chief-0",
         std::string(kHello) + "write end.json {\"exit_code\": 65, \"cause\": \"NaN\"}\nexit 65");
  for (const char* task : {"ps-0", "worker-0", "worker-1"}) Behave(task, "term 143");
  Start();
  EXPECT_EQ(AwaitExit(), "exit code 65") << output_;
  EXPECT_EQ(nlohmann::json::parse(FileContent(root_ + "/run/end.json"))["/cause"_json_pointer],
            "NaN");
}

TEST_F(TrainProcessTest, TheLastWordIsWhyItFailed) {
  Behave("chief-0", "term\nsay 2026-11-21T13:00:00.123Z W chief-0 waiting for a worker\nexit 143");
  Behave("ps-0", "term 143");
  Behave("worker-0", "say no such file: images.idx\nexit 65");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 65") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("  no such file: images.idx\n"),
                             Not(HasSubstr("waiting for a worker"))));
}

TEST_F(TrainProcessTest, WhyATaskEndsIsSaidOnce) {
  const std::string why = "2026-11-21T13:00:00.123Z E chief-0 all is lost exit_code=65";
  Behave("chief-0", "say " + why + "\nexit 65");
  Behave("ps-0", "term 143");
  Behave("worker-0", "term 143");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 65") << output_;
  const size_t first = output_.find(why);
  EXPECT_LT(output_.find("The training failed: chief 0"), first);
  EXPECT_EQ(output_.find("all is lost", first + why.size()), std::string::npos) << output_;
}

TEST_F(TrainProcessTest, ACoordinatorThatSaysNothingIsSaidToHaveSaidNothing) {
  Behave("chief-0", "exit 65");
  Behave("ps-0", "term 143");
  Behave("worker-0", "term 143");
  Start({"--workers", "1"});
  EXPECT_EQ(AwaitExit(), "exit code 65") << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("chief 0"), HasSubstr("exit code 65"),
                             HasSubstr("/run/logs/chief-0.log")));
}

TEST_F(TrainProcessTest, ADrainedWorkerIsNotStartedAgain) {
  Behave("chief-0", "await go_on\nexit 0");
  Behave("ps-0", "await go_on\nexit 0");
  Behave("worker-0", "exit 143");
  Behave("worker-1", "await go_on\nexit 0");
  Start();
  ASSERT_TRUE(AwaitOutput("worker 0 was drained and does not restart; the others continue"))
      << output_;
  Touch("go_on");
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_EQ(FileContent(root_ + "/fake/worker-0.lives"), "1");
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
  ASSERT_TRUE(AwaitOutput("worker 0 ended: exit code 1; the job continues with 1 worker"))
      << output_;
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
  EXPECT_THAT(output_, AllOf(HasSubstr("worker 1"), HasSubstr("  out of memory\n")));
}

// gRPC complains of what it is asked to trace.
TEST_F(TrainProcessTest, ItsOwnLogIsPrintedAsAllElse) {
  for (const char* task : {"chief-0", "ps-0", "worker-0"}) Behave(task, "exit 0");
  Start({"--workers", "1"}, {"GRPC_TRACE=nonsense"});
  EXPECT_EQ(AwaitExit(), "exit code 0") << output_;
  EXPECT_THAT(output_, HasSubstr("shoal: grpc: Unknown trace var: 'nonsense'\n"));
}

}  // namespace
}  // namespace shoal
