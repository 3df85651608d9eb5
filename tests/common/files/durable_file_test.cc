#include "common/files/durable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "common/files/output_file.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/bare_file_system.h"
#include "tests/fakes/passing_file_system.h"
#include "tests/simulation/simulated/simulated_disk.h"

namespace shoal {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr uint64_t kSeeds = 50;

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

// Sets the umask for a while.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(umask(mask)) {}
  ~Umask() { umask(before_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  const mode_t before_;
};

// A disk whose calls fail from one of them on; a write that fails has written half.
class FailingDisk : public SimulatedDisk {
 public:
  void FailAfter(int calls) { calls_left_ = calls; }
  void Recover() { calls_left_ = -1; }

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (Fails()) return FileError(EIO, "open", path);
    absl::StatusOr<std::unique_ptr<File>> opened = SimulatedDisk::Open(path, mode);
    if (!opened.ok()) return opened.status();
    return std::make_unique<FailingFile>(this, *std::move(opened));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Fails() ? FileError(EIO, "rename", from) : SimulatedDisk::Rename(from, to);
  }
  absl::Status RemoveFile(const std::string& path) override {
    return Fails() ? FileError(EIO, "remove", path) : SimulatedDisk::RemoveFile(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    return Fails() ? FileError(EIO, "sync", path) : SimulatedDisk::SyncDirectory(path);
  }

 private:
  class FailingFile : public File {
   public:
    FailingFile(FailingDisk* disk, std::unique_ptr<File> file)
        : File(file->path()), disk_(disk), file_(std::move(file)) {}
    absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
    absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const override {
      return file_->ReadAt(offset, out, size);
    }
    absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const override {
      if (!disk_->Fails()) return file_->WriteAt(offset, data, size);
      file_->WriteAt(offset, data, size / 2).IgnoreError();
      return FileError(ENOSPC, "write", path());
    }
    absl::Status Allocate(uint64_t size) const override { return file_->Allocate(size); }
    absl::Status Sync() const override {
      return disk_->Fails() ? FileError(EIO, "sync", path()) : file_->Sync();
    }

   private:
    FailingDisk* const disk_;
    const std::unique_ptr<File> file_;
  };

  bool Fails() {
    if (calls_left_ > 0) --calls_left_;
    return calls_left_ == 0;
  }

  int calls_left_ = -1;  // 0: all fail; negative: none does
};

std::string Content(const std::string& path, FileSystem* files) {
  return ReadSmallFile(path, 1000, files).value_or("");
}

// Whatever fails, and whatever of it the disk then loses, the file is the old one or the new one.
TEST(ReplaceFileTest, LeavesOneOrTheOtherWholeWhereverItFails) {
  int failures = 0;
  for (bool done = false; !done; ++failures) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE("call " + std::to_string(failures + 1) + ", seed " + std::to_string(seed));
      FailingDisk disk;
      ASSERT_TRUE(ReplaceFile("/file", "the old content", &disk).ok());
      disk.FailAfter(failures + 1);
      done = ReplaceFile("/file", "new", &disk).ok();
      disk.Recover();
      EXPECT_THAT(Content("/file", &disk), AnyOf("the old content", "new"));
      Random random(seed);
      disk.LosePower(&random);
      if (done) {
        EXPECT_EQ(Content("/file", &disk), "new");
        continue;
      }
      EXPECT_THAT(Content("/file", &disk), AnyOf("the old content", "new"));
      // What a writer that died has left does not stand in the way.
      ASSERT_TRUE(ReplaceFile("/file", "another", &disk).ok());
      EXPECT_EQ(Content("/file", &disk), "another");
    }
  }
  EXPECT_GE(failures, 6) << "remove, create, write, sync, rename and sync of the directory";
}

// What is behind a link is somebody else's.
TEST(LinkTest, NothingIsOverwrittenOrRemovedBehindOne) {
  FileSystem* const files = RealFileSystem();
  const TemporaryDirectory directory;
  const std::string target = directory / "target", folder = directory / "folder";
  ASSERT_TRUE(files->MakeDirectory(folder).ok());
  ASSERT_TRUE(WriteNewFile(target, "kept").ok());
  ASSERT_TRUE(WriteNewFile(folder + "/file", "kept").ok());
  const std::string link = directory / "link", folder_link = directory / "folder_link";
  const std::string dangling = directory / "dangling";
  const auto make_links = [&] {
    for (const std::string& each : {link, folder_link, dangling, link + ".tmp"})
      std::filesystem::remove(each);
    std::filesystem::create_symlink(target, link);
    std::filesystem::create_symlink(target, link + ".tmp");
    std::filesystem::create_symlink(folder, folder_link);
    std::filesystem::create_symlink(directory / "nowhere", dangling);
  };
  make_links();
  EXPECT_TRUE(files->IsLink(link));
  EXPECT_TRUE(files->IsLink(folder_link));
  EXPECT_TRUE(files->IsLink(dangling));
  EXPECT_FALSE(files->IsLink(target));
  EXPECT_FALSE(files->IsLink(folder_link + "/file"));

  const absl::Status write = files->Open(link, FileSystem::Mode::kWrite).status();
  EXPECT_EQ(write.code(), absl::StatusCode::kFailedPrecondition) << write;
  EXPECT_THAT(std::string(write.message()), HasSubstr(link));
  EXPECT_EQ(WriteNewFile(dangling, "new").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(ReplaceFile(link, "new").ok());
  EXPECT_EQ(Content(link, files), "new");
  make_links();
  EXPECT_TRUE(files->RemoveFile(link).ok());
  EXPECT_TRUE(files->RemoveTree(folder_link).ok());
  make_links();
  const std::string tree = directory / "tree";
  ASSERT_TRUE(files->MakeDirectory(tree).ok());
  ASSERT_TRUE(files->Rename(folder_link, tree + "/folder_link").ok());
  EXPECT_TRUE(files->RemoveTree(tree).ok());

  EXPECT_EQ(Content(target, files), "kept");
  EXPECT_EQ(Content(folder + "/file", files), "kept");
  EXPECT_FALSE(files->Exists(directory / "nowhere"));
}

TEST(WriteNewFileTest, RejectsAFileThatIsThere) {
  SimulatedDisk disk;
  ASSERT_TRUE(WriteNewFile("/file", "first", &disk).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(WriteNewFile("/file", "second", &disk)));
  EXPECT_EQ(Content("/file", &disk), "first");
}

TEST(ReadSmallFileTest, ReadsUpToItsLimit) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  ASSERT_TRUE(WriteNewFile(path, "four").ok());
  EXPECT_EQ(*ReadSmallFile(path, 4), "four");
  EXPECT_THAT(ReadSmallFile(path, 3).status(),
              FailsWith(absl::StatusCode::kDataLoss, {path, " 4 bytes", " 3 "}));
  EXPECT_TRUE(absl::IsNotFound(ReadSmallFile(directory / "none", 3).status()));
}

// Another process writes over a file's end whenever it is read, so many times.
class ShrinkingDisk : public PassingFileSystem {
 public:
  explicit ShrinkingDisk(int times) : times_(times) {}
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    absl::StatusOr<std::unique_ptr<File>> opened = PassingFileSystem::Open(path, mode);
    if (!opened.ok()) return opened.status();
    return std::make_unique<ShrinkingFile>(&times_, *std::move(opened));
  }

 private:
  class ShrinkingFile : public File {
   public:
    ShrinkingFile(int* times, std::unique_ptr<File> file)
        : File(file->path()), times_(*times), file_(std::move(file)) {}
    absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
    absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const override {
      if (times_-- > 0) std::filesystem::resize_file(path(), size - 1);
      return file_->ReadAt(offset, out, size);
    }
    absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const override {
      return file_->WriteAt(offset, data, size);
    }
    absl::Status Allocate(uint64_t size) const override { return file_->Allocate(size); }
    absl::Status Sync() const override { return file_->Sync(); }

   private:
    int& times_;
    const std::unique_ptr<File> file_;
  };

  int times_;
};

TEST(ReadSmallFileTest, ReadsAgainWhatIsShortenedMeanwhile) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file";
  ASSERT_TRUE(WriteNewFile(path, "a whole line and a half").ok());
  ShrinkingDisk disk(/*times=*/3);
  EXPECT_EQ(*ReadSmallFile(path, 100, &disk), "a whole line and a h");
  ShrinkingDisk restless(/*times=*/15);
  EXPECT_TRUE(absl::IsDataLoss(ReadSmallFile(path, 100, &restless).status())) << "not for ever";
}

// Opening a pipe that nobody writes to waits for a writer.
TEST(ReadSmallFileTest, RejectsAPipeWithoutWaitingForItsWriter) {
  const TemporaryDirectory directory;
  const std::string path = directory / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const absl::Status status = ReadSmallFile(path, 100).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(MakeNewDirectoryTest, NumbersThoseWhoseNameIsTaken) {
  const TemporaryDirectory directory;
  const std::string path = directory / "step";
  EXPECT_EQ(*MakeNewDirectory(path), path);
  EXPECT_EQ(*MakeNewDirectory(path), path + "-2");
  EXPECT_EQ(*MakeNewDirectory(path), path + "-3");
  EXPECT_TRUE(std::filesystem::is_directory(path + "-3"));
  EXPECT_TRUE(absl::IsNotFound(MakeNewDirectory(directory / "none/step").status()));
}

TEST(MakeDirectoriesTest, MadeDirectoriesLast) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimulatedDisk disk;
    ASSERT_TRUE(MakeDirectories("/a", &disk).ok());
    ASSERT_TRUE(MakeDirectories("/a/b/c", &disk).ok());
    ASSERT_TRUE(MakeDirectories("/a/b", &disk).ok());
    Random random(seed);
    disk.LosePower(&random);
    EXPECT_TRUE(disk.IsDirectory("/a/b/c")) << "seed " << seed;
  }
}

TEST(MakeDirectoriesTest, SaysWhatIsInTheWay) {
  SimulatedDisk disk;
  ASSERT_TRUE(WriteNewFile("/file", "", &disk).ok());
  EXPECT_THAT(std::string(MakeDirectories("/file/below", &disk).message()), HasSubstr("/file"));
  BareFileSystem bare;  // has no root either
  EXPECT_TRUE(absl::IsNotFound(MakeDirectories("/a/b", &bare)));
}

// /proc stands for the file systems that reject it with EINVAL.
TEST(SyncDirectoryTest, AFileSystemThatDoesNotSyncThemIsNoError) {
  FileSystem* const files = RealFileSystem();
  EXPECT_TRUE(files->SyncDirectory("/proc/self").ok());
  EXPECT_FALSE(files->SyncsDirectories("/proc/self"));
  const TemporaryDirectory directory;
  EXPECT_TRUE(files->SyncDirectory(directory.path()).ok());
  EXPECT_TRUE(files->SyncsDirectories(directory.path()));
  EXPECT_EQ(files->SyncDirectory(directory / "nowhere").code(), absl::StatusCode::kNotFound);
}

TEST(FileAgeTest, IsNeverLessThanNothing) {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const fs::path path = directory.path() + "/file";
  ASSERT_TRUE(WriteNewFile(path, "x").ok());
  const auto age_at = [&path](std::chrono::seconds age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    return RealFileSystem()->Age(path);
  };
  EXPECT_GE(age_at(std::chrono::hours(2)), std::chrono::hours(2));
  EXPECT_LT(age_at(std::chrono::hours(2)), std::chrono::hours(3));
  EXPECT_EQ(age_at(-std::chrono::hours(2)).count(), 0) << "the clock of the disk is ahead";
  EXPECT_EQ(RealFileSystem()->Age(path.string() + "-missing").count(), 0);
}

TEST(AbsolutePathTest, IsFromTheRootAndPlain) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(AbsolutePath("runs/a"), here + "/runs/a");
  EXPECT_EQ(AbsolutePath("./runs/b/../a/"), here + "/runs/a");
  EXPECT_EQ(AbsolutePath("/x/../../y/."), "/y");
  EXPECT_EQ(AbsolutePath("/"), "/");
}

TEST(PermissionsTest, ANewRunIsItsOwnersAlone) {
  const Umask mask(022);
  const TemporaryDirectory directory;
  const std::string run = directory / "runs/a";
  ASSERT_TRUE(MakeRunDirectory(run).ok());
  EXPECT_EQ(ModeOf(directory / "runs"), 0755u);
  EXPECT_EQ(ModeOf(run), 0700u);
  ASSERT_TRUE(MakeDirectories(run + "/checkpoints/one").ok());
  ASSERT_TRUE(ReplaceFile(run + "/checkpoints/one/file", "1").ok());
  EXPECT_EQ(ModeOf(run + "/checkpoints"), 0700u);
  EXPECT_EQ(ModeOf(*MakeNewDirectory(run + "/checkpoints/one")), 0700u);
  EXPECT_EQ(ModeOf(run + "/checkpoints/one/file"), 0600u);
}

TEST(PermissionsTest, ADirectoryThatExistsDecides) {
  const Umask mask(0);
  for (const auto& [of_directory, of_file] :
       {std::pair(0755u, 0644u), {0750u, 0640u}, {0711u, 0600u}, {0777u, 0644u}}) {
    const TemporaryDirectory directory;
    ASSERT_EQ(chmod(directory.path().c_str(), of_directory), 0);
    ASSERT_TRUE(MakeRunDirectory(directory.path()).ok());
    EXPECT_EQ(ModeOf(directory.path()), of_directory);
    ASSERT_TRUE(MakeDirectories(directory / "sub").ok());
    ASSERT_TRUE(WriteNewFile(directory / "sub/file", "1").ok());
    EXPECT_EQ(ModeOf(directory / "sub"), of_directory & 0755) << of_directory;
    EXPECT_EQ(ModeOf(directory / "sub/file"), of_file) << of_directory;
  }
}

TEST(PermissionsTest, TheUmaskApplies) {
  const Umask mask(077);
  const TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  ASSERT_TRUE(WriteNewFile(directory / "file", "1").ok());
  EXPECT_EQ(ModeOf(directory / "file"), 0600u);
}

TEST(PermissionsTest, AnOutputIsAsThatOfAnyProgram) {
  const Umask mask(022);
  const TemporaryDirectory directory;  // 0700
  auto output = OutputFile::Create(directory / "out/file", /*replace=*/false);
  ASSERT_TRUE(output.ok()) << output.status();
  ASSERT_TRUE((*output)->Append("1").ok());
  ASSERT_TRUE((*output)->Finish().ok());
  EXPECT_EQ(ModeOf(directory / "out"), 0755u);
  EXPECT_EQ(ModeOf(directory / "out/file"), 0644u);
}

// No file is written through a link: a new one replaces the link, an old one is refused.
TEST(PermissionsTest, NoFileIsWrittenThroughALink) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(WriteNewFile(directory / "victim", "whole").ok());
  for (const char* name : {"file", "file.tmp"})
    std::filesystem::create_symlink(directory / "victim", directory / name);
  EXPECT_TRUE(absl::IsAlreadyExists(WriteNewFile(directory / "file", "1")));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RealFileSystem()->Open(directory / "file", FileSystem::Mode::kWrite).status()));
  EXPECT_TRUE(ReplaceFile(directory / "file", "1").ok());
  EXPECT_EQ(*ReadSmallFile(directory / "victim", 100), "whole");
  EXPECT_EQ(*ReadSmallFile(directory / "file", 100), "1");
}

}  // namespace
}  // namespace shoal
