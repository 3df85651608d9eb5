#include "worker/input/files/temporary_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TemporaryTableTest, HoldsWhatWasAppended) {
  absl::StatusOr<TemporaryTable> table = TemporaryTable::Make("x.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    const std::string piece = std::to_string(i);
    ASSERT_TRUE(table->Append(piece).ok());
    expected += piece;
  }
  ASSERT_TRUE(table->Finish().ok());
  EXPECT_EQ(std::string(table->bytes().begin(), table->bytes().end()), expected);
}

// Of what is unpacked nobody knows the end: it must not be the disk's.
TEST(TemporaryTableTest, LeavesSomeOfTheDiskFree) {
  uint64_t written = 0;
  const auto disk = [&](const FileDescriptor&, DiskSpace* space) {
    *space = {.free_bytes = (10 << 20) - written, .bytes = 20 << 20};
    return true;
  };
  absl::StatusOr<TemporaryTable> table = TemporaryTable::Make("bomb.csv.gz", disk);
  ASSERT_TRUE(table.ok()) << table.status();
  absl::Status status;
  for (; status.ok() && written < 20 << 20; written += 1 << 16)
    status = table->Append(std::string(1 << 16, 'x'));
  EXPECT_LE(written, 9 << 20);
  EXPECT_GT(written, 8 << 20);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("bomb.csv.gz: "), HasSubstr("TMPDIR")));
}

TEST(TemporaryTableTest, OfALargeDiskAShareIsNotAsked) {
  const auto room = [](DiskSpace disk) {
    return CheckDiskSpace(FileDescriptor(), 1 << 20,
                          [disk](const FileDescriptor&, DiskSpace* space) {
                            *space = disk;
                            return true;
                          });
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(room({.free_bytes = kGiB, .bytes = 4096 * kGiB}), 0);
  EXPECT_EQ(room({.free_bytes = kGiB / 4, .bytes = 4096 * kGiB}), ENOSPC);
  EXPECT_EQ(room({.free_bytes = 0, .bytes = 0}), 0) << "nothing is known";
}

}  // namespace
}  // namespace shoal
