#include "cli/local_cluster/local_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "cli/local_cluster/signal_watch.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/in_process/in_process_network.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Time kDeadline = std::chrono::minutes(5);

TEST(ExitCauseTest, SaysHow) {
  EXPECT_EQ((ExitCause{.code = 65}).ToString(), "exit code 65");
  EXPECT_EQ((ExitCause{.by_signal = true, .code = SIGKILL}).ToString(),
            "killed by SIGKILL (signal 9)");
  EXPECT_TRUE(ExitCause{}.ok());
  EXPECT_FALSE((ExitCause{.by_signal = true}).ok());
}

TEST(ChildProcessTest, NamesAProgramThatCannotBeStarted) {
  const auto child = ChildProcess::Spawn({.program = "/no/such/program"});
  EXPECT_THAT(std::string(child.status().message()), HasSubstr("/no/such/program: "));
}

TEST(ChildProcessTest, IsKilledAndReapedByItsDestructor) {
  auto child = ChildProcess::Spawn({.program = "/bin/tail", .arguments = {"-f", "/dev/null"}});
  ASSERT_TRUE(child.ok()) << child.status();
  const pid_t pid = (*child)->pid();
  child->reset();
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// Runs shell scripts as tasks, on a loop of its own.
class LocalClusterTest : public testing::Test {
 protected:
  LocalClusterTest()
      : watch_(node_->loop()),
        cluster_({.loop = node_->loop(),
                  .watch = &watch_,
                  .log_dir = log_dir_,
                  .on_line =
                      [this](const Child& child, const std::string& line) {
                        lines_[TaskName(child.task)].push_back(line);
                        if (on_line_) on_line_();
                      },
                  .on_exit =
                      [this](const Child& child) {
                        exits_[TaskName(child.task)] = child.exit_cause->ToString();
                        if (!cluster_.any_running()) node_->loop()->Stop();
                      }}),
        signals_(&watch_, {SIGCHLD}, [this](int) { cluster_.ReapEnded(); }) {}

  static TaskCommand Script(TaskId task, const std::string& script) {
    return {task,
            {.program = "/bin/sh", .arguments = {"-c", script}, .environment = {"WHO=nobody"}}};
  }

  // Runs the loop until all tasks have ended, or for a long time.
  void RunToEnd() {
    node_->loop()->CallAfter(kDeadline, [this] { node_->loop()->Stop(); });
    node_->Run();
    EXPECT_FALSE(cluster_.any_running());
  }

  InProcessHub hub_;
  const std::unique_ptr<InProcessHub::Node> node_ = hub_.CreateNode();
  const TemporaryDirectory directory_;
  const std::string& log_dir_ = directory_.path();
  DescriptorWatch watch_;
  std::map<std::string, std::vector<std::string>> lines_;
  std::map<std::string, std::string> exits_;
  std::function<void()> on_line_;
  LocalCluster cluster_;
  SignalWatch signals_;
};

TEST_F(LocalClusterTest, ReportsLinesAndEnds) {
  ASSERT_TRUE(cluster_
                  .Start({Script({TaskType::kPs, 0}, "echo out; echo err >&2; exit 3"),
                          Script({TaskType::kWorker, 1}, "printf 'no newline'; kill -9 $$")})
                  .ok());
  RunToEnd();
  EXPECT_THAT(lines_["ps 0"], ElementsAre("out", "err"));
  EXPECT_THAT(lines_["worker 1"], ElementsAre("no newline"));
  EXPECT_EQ(exits_["ps 0"], "exit code 3");
  EXPECT_EQ(exits_["worker 1"], "killed by SIGKILL (signal 9)");
  EXPECT_TRUE(std::filesystem::exists(log_dir_ + "/ps-0.log"));
  EXPECT_TRUE(std::filesystem::exists(log_dir_ + "/worker-1.log"));
}

TEST_F(LocalClusterTest, ChildrenHaveTheirOwnEnvironmentInputAndGroup) {
  const absl::Status started =
      cluster_.Start({Script({TaskType::kPs, 0},
                             "echo $WHO; cat; read pid comm state ppid pgrp rest < /proc/$$/stat; "
                             "test $pgrp = $$ && echo leads its group")});
  ASSERT_TRUE(started.ok()) << started;
  RunToEnd();
  EXPECT_THAT(lines_["ps 0"], ElementsAre("nobody", "leads its group"));
}

TEST_F(LocalClusterTest, ChildrenBlockNoSignalButTheOneTheyHeed) {
  const TaskCommand plain =
      Script({TaskType::kPs, 0}, "exec sed -n 's/^SigBlk:.0*//p' /proc/self/status");
  TaskCommand heeding = plain;
  heeding.task.index = 1;
  heeding.process.handles_sigterm = true;
  ASSERT_TRUE(cluster_.Start({plain, heeding}).ok());
  RunToEnd();
  EXPECT_THAT(lines_["ps 0"], ElementsAre(""));
  EXPECT_THAT(lines_["ps 1"], ElementsAre("4000"));  // 1 << (SIGTERM - 1)
}

TEST_F(LocalClusterTest, SignalsGoToTheTypeNamed) {
  const std::string until_told =
      "trap 'echo told; exit 143' TERM; echo ready; while :; do read x <&3; done "
      "3<>" +
      log_dir_ + "/fifo";
  ASSERT_EQ(mkfifo((log_dir_ + "/fifo").c_str(), 0600), 0);
  int ready = 0;
  on_line_ = [&] {
    if (++ready == 2) cluster_.Signal(TaskType::kWorker, SIGTERM);
    if (ready == 3) cluster_.SignalAll(SIGKILL);
  };
  ASSERT_TRUE(cluster_
                  .Start({Script({TaskType::kPs, 0}, until_told),
                          Script({TaskType::kWorker, 0}, until_told)})
                  .ok());
  EXPECT_EQ(cluster_.running(TaskType::kWorker), 1);
  RunToEnd();
  EXPECT_THAT(lines_["worker 0"], ElementsAre("ready", "told"));
  EXPECT_THAT(lines_["ps 0"], ElementsAre("ready"));
  EXPECT_EQ(exits_["ps 0"], "killed by SIGKILL (signal 9)");
  EXPECT_EQ(cluster_.running(TaskType::kWorker), 0);
}

TEST_F(LocalClusterTest, AChildMaySayMoreThanAPipeHolds) {
  ASSERT_TRUE(cluster_
                  .Start({Script({TaskType::kPs, 0},
                                 "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")})
                  .ok());
  RunToEnd();
  EXPECT_EQ(lines_["ps 0"].size(), 20000);
  EXPECT_EQ(lines_["ps 0"].back(), "line 19999");
}

TEST_F(LocalClusterTest, AProgramThatIsMissingIsNamed) {
  const absl::Status status =
      cluster_.Start({{{TaskType::kPs, 0}, {.program = "/no/such/shoal-ps"}}});
  EXPECT_THAT(status.message(), HasSubstr("/no/such/shoal-ps"));
}

}  // namespace
}  // namespace shoal
