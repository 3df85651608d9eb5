#include "common/files/private_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

mode_t PermissionsOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(PrivateFileTest, OnlyTheOwnerHasRights) {
  const TemporaryDirectory directory;
  const std::string made = directory / "a/b";
  const mode_t before = umask(0);
  EXPECT_TRUE(MakePrivateDirectory(made, /*only_owner_reads=*/true).ok());
  EXPECT_TRUE(WriteNewPrivateFiles(made, {{"one", "1"}, {"two", ""}}).ok());
  umask(before);
  EXPECT_EQ(PermissionsOf(made), 0700u);
  EXPECT_EQ(PermissionsOf(directory / "a"), 0755u);
  EXPECT_EQ(PermissionsOf(made + "/one"), 0600u);
  EXPECT_EQ(PermissionsOf(made + "/two"), 0600u);
}

TEST(PrivateFileTest, AnExistingDirectoryIsChecked) {
  const TemporaryDirectory directory;
  const std::string made = directory / "made";
  ASSERT_EQ(mkdir(made.c_str(), 0700), 0);
  EXPECT_TRUE(MakePrivateDirectory(made, /*only_owner_reads=*/true).ok());
  ASSERT_EQ(chmod(made.c_str(), 0755), 0);
  EXPECT_TRUE(MakePrivateDirectory(made, /*only_owner_reads=*/false).ok());
  EXPECT_THAT(MakePrivateDirectory(made, /*only_owner_reads=*/true),
              FailsWith(absl::StatusCode::kFailedPrecondition, {made, "0755"}));
  ASSERT_EQ(chmod(made.c_str(), 0770), 0);
  EXPECT_THAT(MakePrivateDirectory(made, /*only_owner_reads=*/false),
              FailsWith(absl::StatusCode::kFailedPrecondition, {made, "0770"}));
  std::ofstream(directory / "file") << "x";
  EXPECT_THAT(MakePrivateDirectory(directory / "file", /*only_owner_reads=*/false),
              FailsWith(absl::StatusCode::kFailedPrecondition, {directory / "file"}));
}

TEST(PrivateFileTest, AllFilesAreWrittenOrNone) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "there") << "old";
  std::filesystem::create_symlink("nowhere", directory / "link");
  for (const char* taken : {"there", "link"}) {
    EXPECT_THAT(WriteNewPrivateFiles(directory.path(), {{"first", "1"}, {taken, "2"}}),
                FailsWith(absl::StatusCode::kAlreadyExists, {directory / taken}));
    EXPECT_FALSE(std::filesystem::exists(directory / "first"));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "nowhere"));
  EXPECT_EQ(HeldDirectory::Open(directory.path())->Read("there", 10)->content, "old");
}

TEST(PrivateFileTest, ADirectoryIsHeldWhileItsNameMovesOn) {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  for (const char* name : {"old", "new"}) {
    fs::create_directory(directory / name);
    std::ofstream(directory / name + "/file") << name;
  }
  fs::create_directory_symlink("old", directory / "current");
  const absl::StatusOr<HeldDirectory> held = HeldDirectory::Open(directory / "current");
  ASSERT_TRUE(held.ok()) << held.status();
  fs::remove(directory / "current");
  fs::create_directory_symlink("new", directory / "current");
  EXPECT_EQ(held->Read("file", 10)->content, "old");
  EXPECT_EQ(HeldDirectory::Open(directory / "current")->Read("file", 10)->content, "new");
}

TEST(PrivateFileTest, ReadingHasLimitsAndTellsPermissions) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  std::ofstream(path) << "12345";
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const HeldDirectory held = *HeldDirectory::Open(directory.path());
  const absl::StatusOr<OwnedFile> file = held.Read("file", 5);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->content, "12345");
  EXPECT_EQ(file->mode, 0640u);
  EXPECT_EQ(file->owner, geteuid());
  EXPECT_THAT(held.Read("file", 4).status(), FailsWith(absl::StatusCode::kDataLoss, {path}));
  EXPECT_THAT(held.Read("none", 4).status(),
              FailsWith(absl::StatusCode::kNotFound, {directory / "none"}));
  EXPECT_FALSE(held.Has("none"));
  std::filesystem::create_symlink("nowhere", directory / "link");
  EXPECT_TRUE(held.Has("link"));
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(held.Read("pipe", 4).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {directory / "pipe"}));
}

}  // namespace
}  // namespace shoal
