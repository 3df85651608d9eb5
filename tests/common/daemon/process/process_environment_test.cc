#include "common/daemon/process/process_environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "common/daemon/process/exit_code.h"

namespace shoal {
namespace {

TEST(ProcessEnvironmentTest, ProxyVariablesAreGone) {
  setenv("http_proxy", "http://proxy:1", 1);
  setenv("grpc_proxy", "http://proxy:1", 1);
  setenv("HTTPS_PROXY", "http://proxy:1", 1);
  ClearProxyVariables();
  EXPECT_EQ(std::getenv("http_proxy"), nullptr);
  EXPECT_EQ(std::getenv("grpc_proxy"), nullptr);
  EXPECT_EQ(std::getenv("HTTPS_PROXY"), nullptr);
}

TEST(ProcessEnvironmentTest, NamesAreLookedUpByTheSystemUnlessTheUserSaysElse) {
  unsetenv("GRPC_DNS_RESOLVER");
  UseSystemNames();
  EXPECT_STREQ(std::getenv("GRPC_DNS_RESOLVER"), "native");
  setenv("GRPC_DNS_RESOLVER", "ares", 1);
  UseSystemNames();
  EXPECT_STREQ(std::getenv("GRPC_DNS_RESOLVER"), "ares");
}

TEST(ProcessEnvironmentTest, TooFewOpenFilesAreRejected) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(CheckFileLimit(), absl::OkStatus());
  const rlimit low{.rlim_cur = 12, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Status rejected = CheckFileLimit();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ProcessEnvironmentTest, AnOpenMpPolicyOfTheUserStays) {
  setenv("OMP_WAIT_POLICY", "active", 1);
  char* argv[] = {nullptr};
  EXPECT_TRUE(UsePassiveOpenMpThreads(argv).ok());
  EXPECT_STREQ(std::getenv("OMP_WAIT_POLICY"), "active");
}

// Exit status of a child that runs this test program again, for one test only, without the policy.
TEST(ProcessEnvironmentTest, StartsItselfAgainWithThePassivePolicy) {
  if (std::getenv("SHOAL_TEST_IN_CHILD") != nullptr) {
    // The second time around the variable is set, and this process is the same one.
    char program[] = "process_environment_test";
    char filter[] = "--gtest_filter=ProcessEnvironmentTest.StartsItselfAgainWithThePassivePolicy";
    char* argv[] = {program, filter, nullptr};
    const bool first = std::getenv("OMP_WAIT_POLICY") == nullptr;
    ASSERT_TRUE(UsePassiveOpenMpThreads(argv).ok());
    ASSERT_FALSE(first) << "came back without starting again";
    _exit(std::string(std::getenv("OMP_WAIT_POLICY")) == "passive" ? 42 : 1);
  }
  const pid_t child = fork();
  if (child == 0) {
    setenv("SHOAL_TEST_IN_CHILD", "1", 1);
    unsetenv("OMP_WAIT_POLICY");
    execl("/proc/self/exe", "process_environment_test",
          "--gtest_filter=ProcessEnvironmentTest.StartsItselfAgainWithThePassivePolicy", nullptr);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(ProcessEnvironmentTest, TheNextFileGetsNoStandardDescriptor) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    OpenStandardDescriptors();
    const bool closed = write(STDOUT_FILENO, "nowhere", 7) == -1;
    _exit(closed && open("/dev/null", O_RDONLY) > STDERR_FILENO ? 42 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(ProcessEnvironmentTest, ChildIsKilledWhenItsParentIs) {
  // This process starts a parent, which starts a child; the pipe is closed when the child is gone.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t own = getpid();
    if (fork() == 0) {
      ExitWithParent(own);
      const char ready = 'r';
      if (write(ends[1], &ready, 1) != 1) _exit(1);
      while (true) pause();
    }
    close(ends[1]);
    while (true) pause();
  }
  close(ends[1]);
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_EQ(read(ends[0], &byte, 1), 0) << "the child outlived its parent";
  close(ends[0]);
}

TEST(ProcessEnvironmentTest, ExitsAtOnceWhenTheParentIsGoneAlready) {
  const pid_t child = fork();
  if (child == 0) {
    ExitWithParent(getpid());  // nobody is its own parent
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitDrained);
}

}  // namespace
}  // namespace shoal
