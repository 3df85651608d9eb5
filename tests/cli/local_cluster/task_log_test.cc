#include "cli/local_cluster/task_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Contents(TaskLog& log) {
  EXPECT_TRUE(log.AwaitWritten(std::chrono::minutes(1)));
  return FileContent(log.path());
}

class TaskLogTest : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "task.log";
};

TEST_F(TaskLogTest, CutsOutputIntoLinesWhereverItIsBroken) {
  const auto log = TaskLog::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT((*log)->Append("one\ntw"), ElementsAre("one"));
  EXPECT_THAT((*log)->Append("o"), IsEmpty());
  EXPECT_THAT((*log)->Append("\n\nthree"), ElementsAre("two", ""));
  EXPECT_THAT((*log)->Flush(), ElementsAre("three"));
  EXPECT_THAT((*log)->Flush(), IsEmpty());
  EXPECT_EQ(Contents(**log), "one\ntwo\n\nthree\n");
}

TEST_F(TaskLogTest, ItsDirectoryDecidesWhoReadsIt) {
  ASSERT_EQ(chmod(directory_.path().c_str(), 0750), 0);
  ASSERT_TRUE(TaskLog::Open(path_).ok());
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(TaskLogTest, ShownLinesSteerNoTerminal) {
  const auto log = TaskLog::Open(path_);
  ASSERT_TRUE(log.ok());
  EXPECT_THAT((*log)->Append("a\x1b[2Jb\n"), ElementsAre("a\\x1b[2Jb"));
  EXPECT_THAT((*log)->last_lines(), ElementsAre("a\\x1b[2Jb"));
  EXPECT_EQ(Contents(**log), "a\x1b[2Jb\n");
}

TEST_F(TaskLogTest, KeepsTheLastLines) {
  const auto log = TaskLog::Open(path_);
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 30; ++i) (*log)->Append(std::to_string(i) + "\n");
  ASSERT_EQ((*log)->last_lines().size(), TaskLog::kLastLines);
  EXPECT_EQ((*log)->last_lines().front(), "10");
  EXPECT_EQ((*log)->last_lines().back(), "29");
}

TEST_F(TaskLogTest, BreaksALineWithoutEnd) {
  const auto log = TaskLog::Open(path_);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ((*log)->Append(std::string(3 * TaskLog::kMaxLineBytes + 1, 'x')).size(), 3);
  EXPECT_THAT((*log)->Flush(), ElementsAre("x"));
}

TEST_F(TaskLogTest, GoesOnWithTheFileOfAnEarlierStart) {
  for (const char* life : {"before", "after"}) {
    const auto log = TaskLog::Open(path_);
    (*log)->Append(std::string(life) + "\n");
    Contents(**log);
  }
  EXPECT_EQ(Contents(**TaskLog::Open(path_)), "before\nafter\n");
}

// As a disk that hangs: a pipe that nobody reads.
TEST_F(TaskLogTest, WaitsForNoDisk) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int unread = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  auto log = TaskLog::Open(path_);
  ASSERT_TRUE(log.ok());
  const std::string line(1000, 'x');
  for (int i = 0; i < 3000; ++i) EXPECT_THAT((*log)->Append(line + "\n"), ElementsAre(line));
  EXPECT_FALSE((*log)->AwaitWritten(std::chrono::milliseconds(1)));
  log->reset();
  close(unread);
}

TEST_F(TaskLogTest, FollowsNoLink) {
  const std::string target = directory_ / "other.txt";
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  const auto log = TaskLog::Open(path_);
  EXPECT_EQ(log.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(log.status().message(), HasSubstr(path_));
  EXPECT_NE(access(target.c_str(), F_OK), 0) << "a link's target was made";
}

TEST_F(TaskLogTest, WaitsForNoReaderOfAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const auto log = TaskLog::Open(path_);
  EXPECT_EQ(log.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(log.status().message(), HasSubstr(path_));
}

TEST_F(TaskLogTest, NamesAFileThatCannotBeWritten) {
  const auto log = TaskLog::Open("/no/such/directory/worker-0.log");
  EXPECT_THAT(log.status().message(), HasSubstr("/no/such/directory/worker-0.log"));
}

TEST(IsLastErrorTest, KnowsBothFormats) {
  EXPECT_TRUE(IsLastError("2026-11-21T13:00:00.123Z E worker-0 no such file exit_code=78"));
  EXPECT_FALSE(IsLastError("2026-11-21T13:00:00.123Z E worker-0 no such file"));
  EXPECT_FALSE(IsLastError("2026-11-21T13:00:00.123Z I worker-0 stopped exit_code=143"));
  EXPECT_TRUE(
      IsLastError(R"({"time":"t","level":"error","task":"p","message":"m","exit_code":"78"})"));
}

TEST(IsWarningOrWorseTest, KnowsBothFormats) {
  EXPECT_TRUE(IsWarningOrWorse("2026-11-21T13:00:00.123Z W worker-0 slow"));
  EXPECT_TRUE(IsWarningOrWorse("2026-11-21T13:00:00.123Z E worker-0 gone"));
  EXPECT_FALSE(IsWarningOrWorse("2026-11-21T13:00:00.123Z I worker-0 W is not the level"));
  EXPECT_FALSE(IsWarningOrWorse("2026-11-21T13:00:00.123Z D ps-0 chunk"));
  EXPECT_TRUE(IsWarningOrWorse(R"({"time":"t","level":"warning","task":"ps-0","message":"m"})"));
  EXPECT_TRUE(IsWarningOrWorse(R"({"time":"t","level":"error","task":"ps-0","message":"m"})"));
  EXPECT_FALSE(IsWarningOrWorse(R"({"time":"t","level":"info","task":"ps-0","message":"m"})"));
  EXPECT_FALSE(IsWarningOrWorse(""));
}

}  // namespace
}  // namespace shoal
