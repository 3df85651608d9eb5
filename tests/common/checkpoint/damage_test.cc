// Promise 6: what is on disk is whole or absent. Goes through every byte of a checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>

#include "common/base/crc32c.h"
#include "common/checkpoint/checkpoint_store.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {
namespace {

using testing::HasSubstr;

// A disk that fails to read one of its files.
class BadSectors : public PassingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (path == unreadable) return FileError(EIO, "read", path);
    return PassingFileSystem::Open(path, mode);
  }
  std::string unreadable;
};

class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    older_ = WriteSmallCheckpoint(&store_, 1, 10);
    newer_ = WriteSmallCheckpoint(&store_, 1, 20);
    ASSERT_EQ(NamesIn(newer_.directory).size(), 8u);
  }
  // Everything that has to be so while the file `name` of the newer checkpoint is not whole.
  void ExpectFoundAndPassedOver(const std::string& name) {
    const absl::Status status = store_.Verify(newer_);
    ASSERT_FALSE(status.ok());
    ASSERT_THAT(std::string(status.message()), HasSubstr(newer_.directory + "/" + name));

    std::vector<std::string> problems;
    const auto newest = store_.NewestVerified({}, &problems);
    ASSERT_TRUE(newest.ok()) << newest.status();
    ASSERT_TRUE(newest->has_value());
    ASSERT_EQ((*newest)->directory, older_.directory);
    ASSERT_EQ(problems.size(), 1u);
    ASSERT_THAT(problems[0], HasSubstr(newer_.directory + "/" + name));
  }
  const TemporaryDirectory run_;
  CheckpointStore store_{run_.path() + "/checkpoints"};
  StoredCheckpoint older_;
  StoredCheckpoint newer_;
};

TEST_F(DamageTest, EveryFlippedByteIsFound) {
  for (const std::string& name : NamesIn(newer_.directory)) {
    const std::string path = newer_.directory + "/" + name;
    const std::string whole = FileContent(path);
    for (size_t i = 0; i < whole.size(); ++i) {
      for (const char flip : {'\x01', '\x20'}) {
        SCOPED_TRACE(testing::Message() << name << " byte " << i << " ^ " << int{flip});
        std::string damaged = whole;
        damaged[i] ^= flip;
        WriteAll(path, damaged);
        ASSERT_NO_FATAL_FAILURE(ExpectFoundAndPassedOver(name));
      }
    }
    WriteAll(path, whole);
    ASSERT_TRUE(store_.Verify(newer_).ok());
  }
}

TEST_F(DamageTest, EveryTruncationIsFound) {
  for (const std::string& name : NamesIn(newer_.directory)) {
    const std::string path = newer_.directory + "/" + name;
    const std::string whole = FileContent(path);
    for (size_t size = 0; size < whole.size(); ++size) {
      SCOPED_TRACE(testing::Message() << name << " cut off at " << size);
      WriteAll(path, whole.substr(0, size));
      ASSERT_NO_FATAL_FAILURE(ExpectFoundAndPassedOver(name));
    }
    WriteAll(path, whole + "x");
    ASSERT_NO_FATAL_FAILURE(ExpectFoundAndPassedOver(name));
    WriteAll(path, whole);
    ASSERT_TRUE(store_.Verify(newer_).ok());
  }
}

TEST_F(DamageTest, EveryMissingFileIsFound) {
  for (const std::string& name : NamesIn(newer_.directory)) {
    SCOPED_TRACE(name);
    const std::string path = newer_.directory + "/" + name;
    const std::string whole = FileContent(path);
    std::filesystem::remove(path);
    if (name == kManifestName) {
      // Not a damaged checkpoint but none at all.
      EXPECT_EQ(store_.List(nullptr)->size(), 1u);
      EXPECT_EQ((*store_.NewestVerified({}, nullptr))->directory, older_.directory);
      EXPECT_EQ(store_.Verify(newer_).code(), absl::StatusCode::kNotFound);
    } else {
      ASSERT_NO_FATAL_FAILURE(ExpectFoundAndPassedOver(name));
    }
    WriteAll(path, whole);
  }
}

TEST_F(DamageTest, DirectoryInThePlaceOfAFile) {
  const std::string path = newer_.directory + "/job.json";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  ExpectFoundAndPassedOver("job.json");
  const auto reader = CheckpointReader::Open(newer_.directory);
  ASSERT_TRUE(reader.ok()) << "the variables are there";
  EXPECT_FALSE((*reader)->Verify().ok());
}

// Two manifests of one cut: the second was copied to files that it does not describe.
TEST_F(DamageTest, AManifestOfAnotherCheckpoint) {
  const std::string path = newer_.directory + "/manifest.json";
  WriteAll(path, FileContent(older_.directory + "/manifest.json"));
  std::vector<std::string> problems;
  const auto newest = store_.NewestVerified({}, &problems);
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->directory, older_.directory);
  EXPECT_THAT(problems, testing::ElementsAre(HasSubstr(newer_.directory)));
}

TEST_F(DamageTest, TwoManifestsInOneFile) {
  const std::string path = newer_.directory + "/manifest.json";
  WriteAll(path, FileContent(path) + FileContent(older_.directory + "/manifest.json"));
  ExpectFoundAndPassedOver("manifest.json");
  WriteAll(path, FileContent(path) + FileContent(path));
  ExpectFoundAndPassedOver("manifest.json");
}

TEST_F(DamageTest, AManifestThatIsADirectory) {
  const std::string path = newer_.directory + "/manifest.json";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  ExpectFoundAndPassedOver("manifest.json");
}

// A bad sector stays bad. A run that waited for it would never continue.
TEST_F(DamageTest, AFileThatTheDiskFailsToReadIsSkippedAndStays) {
  BadSectors disk;
  const CheckpointStore store(run_.path() + "/checkpoints", &disk);
  for (const std::string& name : NamesIn(newer_.directory)) {
    disk.unreadable = newer_.directory + "/" + name;
    std::vector<std::string> problems;
    const auto newest = store.NewestVerified({}, &problems);
    ASSERT_TRUE(newest.ok() && newest->has_value()) << name;
    EXPECT_EQ((*newest)->directory, older_.directory);
    EXPECT_THAT(problems, testing::ElementsAre(HasSubstr(disk.unreadable)));
  }
  disk.unreadable.clear();
  EXPECT_EQ((*store.NewestVerified({}, nullptr))->directory, newer_.directory);
}

// A checkpoint that was copied beside itself is there twice; either is as good.
TEST_F(DamageTest, TwoCheckpointsOfOneCut) {
  const std::string copy = newer_.directory + "-copy";
  std::filesystem::copy(newer_.directory, copy);
  EXPECT_EQ((*store_.NewestVerified({}, nullptr))->manifest.cut_step, 20u);
  for (const auto& [damaged, whole] :
       {std::pair(copy, newer_.directory), std::pair(newer_.directory, copy)}) {
    std::filesystem::resize_file(damaged + "/" + newer_.manifest.files[0].name, 1);
    EXPECT_EQ((*store_.NewestVerified({}, nullptr))->directory, whole);
    std::filesystem::copy_file(whole + "/" + newer_.manifest.files[0].name,
                               damaged + "/" + newer_.manifest.files[0].name,
                               std::filesystem::copy_options::overwrite_existing);
  }
}

TEST_F(DamageTest, AManifestThatIsNotNamedSoIsNone) {
  WriteAll(older_.directory + "/manifest.json~", FileContent(newer_.directory + "/manifest.json"));
  WriteAll(newer_.directory + "/manifest.json.new",
           FileContent(older_.directory + "/manifest.json"));
  EXPECT_EQ(store_.List(nullptr)->size(), 2u);
  EXPECT_TRUE(store_.Verify(older_).ok());
  EXPECT_EQ((*store_.NewestVerified({}, nullptr))->directory, newer_.directory);
}

TEST_F(DamageTest, JobOfAnotherFingerprint) {
  // All checksums are right; only the fingerprint is of another job.
  Manifest manifest = newer_.manifest;
  manifest.job_fingerprint ^= 1;
  WriteAll(newer_.directory + "/manifest.json", manifest.ToText());
  const auto listed = store_.List(nullptr);
  ASSERT_TRUE(listed.ok());
  const absl::Status status = store_.Verify(listed->front());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job.json"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(ChecksumText(manifest.job_fingerprint)));
}

}  // namespace
}  // namespace shoal
