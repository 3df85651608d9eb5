#include "coordinator/run/csv_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/coordinator/run/full_disk.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class CsvWriterTest : public testing::Test {
 protected:
  std::vector<HistoryLine> LinesFrom(uint64_t from) const {
    std::vector<HistoryLine> lines;
    for (uint64_t i = from; i < lines_.size(); ++i) lines.push_back({i, lines_[i] + "\n"});
    return lines;
  }
  void Add(const std::string& line) {
    lines_.push_back(line);
    writer_.Changed(lines_.size() - 1);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/a.csv";
  FullDisk disk_;
  FakeLoop loop_;
  std::vector<std::string> lines_;
  int idle_ = 0;
  Wakeup wakeup_{&loop_, [this](Wakeup::Cause) { ++idle_; }};
  CsvWriter writer_{{.loop = &loop_,
                     .files = &disk_,
                     .path = path_,
                     .header = "header\n",
                     .lines = [this](uint64_t from) { return LinesFrom(from); },
                     .wakeup = &wakeup_}};
};

TEST_F(CsvWriterTest, WritesOneAtATimeWhatHasChanged) {
  Add("a");
  Add("b");
  EXPECT_EQ(writer_.owed_from(), 0u);
  loop_.RunOneOffloaded();
  EXPECT_EQ(FileContent(path_), "header\na\n");
  EXPECT_EQ(writer_.owed_from(), 1u);
  EXPECT_EQ(idle_, 0);
  loop_.RunUntilIdle();
  EXPECT_EQ(FileContent(path_), "header\na\nb\n");
  EXPECT_EQ(writer_.owed_from(), std::nullopt);
  EXPECT_THAT(writer_.Owed(), IsEmpty());
  EXPECT_EQ(idle_, 1);
}

// It was stopped for a while, and does not know of its successor yet.
TEST_F(CsvWriterTest, WritesNothingOnceAnotherCoordinatorHasTheLock) {
  const std::string leases = directory_.path() + "/.lease";
  RunLock lock({.loop = &loop_, .files = RealFileSystem(), .directory = leases});
  CsvWriter writer({.loop = &loop_,
                    .files = &disk_,
                    .path = path_,
                    .header = "header\n",
                    .lines = [this](uint64_t from) { return LinesFrom(from); },
                    .wakeup = &wakeup_,
                    .lock = &lock});
  lock.Acquire({}, [](const absl::Status&) {});
  loop_.RunUntilIdle();
  ASSERT_TRUE(lock.leading());
  lines_ = {"a"};
  writer.Changed(0);
  loop_.RunUntilIdle();
  EXPECT_EQ(FileContent(path_), "header\na\n");
  ASSERT_TRUE(std::filesystem::copy_file(leases + "/1", leases + "/2"));
  lines_.push_back("b");
  writer.Changed(1);
  loop_.RunUntilIdle();
  EXPECT_EQ(FileContent(path_), "header\na\n");
  EXPECT_TRUE(absl::IsAborted(writer.last_write())) << writer.last_write();
  EXPECT_THAT(writer.Owed(), HasSubstr(leases + "/2"));
}

TEST_F(CsvWriterTest, TriesAgainAfterAPauseUntilTheDiskTakesIt) {
  disk_.full = true;
  Add("a");
  loop_.RunUntilIdle();
  EXPECT_EQ(disk_.writes, 1);
  EXPECT_EQ(idle_, 1);
  EXPECT_EQ(writer_.owed_from(), 0u);
  EXPECT_THAT(writer_.Owed(), AllOf(HasSubstr(path_), HasSubstr("no space left")));
  loop_.Advance(3 * CsvWriter::kRetryWriteAfter);
  EXPECT_EQ(disk_.writes, 4);
  disk_.full = false;
  loop_.Advance(CsvWriter::kRetryWriteAfter);
  EXPECT_EQ(FileContent(path_), "header\na\n");
  EXPECT_TRUE(writer_.last_write().ok());
  const int writes = disk_.writes;
  loop_.Advance(10 * CsvWriter::kRetryWriteAfter);
  EXPECT_EQ(disk_.writes, writes);
}

TEST_F(CsvWriterTest, AFileThatSomebodyChangedIsReplacedAtOnce) {
  Add("a");
  loop_.RunUntilIdle();
  WriteAll(path_, "mine");
  Add("b");
  loop_.RunUntilIdle();
  EXPECT_EQ(FileContent(path_), "header\na\nb\n");
}

TEST_F(CsvWriterTest, HeldItWritesNothing) {
  disk_.full = true;
  Add("a");
  loop_.RunUntilIdle();
  disk_.full = false;
  writer_.Hold();
  Add("b");
  loop_.Advance(10 * CsvWriter::kRetryWriteAfter);
  EXPECT_EQ(disk_.writes, 1);
  EXPECT_EQ(writer_.owed_from(), 0u);
  writer_.Release();
  loop_.RunUntilIdle();
  EXPECT_EQ(FileContent(path_), "header\na\nb\n");
}

}  // namespace
}  // namespace shoal
