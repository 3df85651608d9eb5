#include "common/daemon/process/process_mark.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace shoal {
namespace {

TEST(ProcessMarkTest, OneThatRunsIsNotGone) {
  ASSERT_NE(ProcessMark(), "");
  EXPECT_FALSE(IsProcessGone(ProcessMark()));
}

TEST(ProcessMarkTest, OneThatWasKilledIsGoneBeforeAndAfterItIsWaitedFor) {
  int mark[2], end[2];
  ASSERT_EQ(pipe(mark) + pipe(end), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string own = ProcessMark();
    (void)!write(mark[1], own.data(), own.size());
    char byte;
    (void)!read(end[0], &byte, 1);  // until it is killed
    _exit(0);
  }
  char text[256];
  const ssize_t size = read(mark[0], text, sizeof(text));
  ASSERT_GT(size, 0);
  const std::string of_child(text, static_cast<size_t>(size));
  EXPECT_NE(of_child, ProcessMark());
  EXPECT_FALSE(IsProcessGone(of_child));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsProcessGone(of_child));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(IsProcessGone(of_child));
  for (const int descriptor : {mark[0], mark[1], end[0], end[1]}) close(descriptor);
}

TEST(ProcessMarkTest, OfAnotherMachineNothingIsKnown) {
  const std::string own = ProcessMark();
  std::string other_boot = own;
  other_boot[0] = other_boot[0] == '0' ? '1' : '0';
  EXPECT_FALSE(IsProcessGone(other_boot + "1"));
  EXPECT_TRUE(IsProcessGone(own + "1")) << "the id was used again";
  for (const char* nonsense : {"", " ", "a b c d", "a b 1 d e", "\n"})
    EXPECT_FALSE(IsProcessGone(nonsense));
}

}  // namespace
}  // namespace shoal
