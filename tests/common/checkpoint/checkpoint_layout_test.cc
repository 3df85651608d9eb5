#include "common/checkpoint/checkpoint_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/crc32c.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> TensorsOf(const CheckpointLayout::File& file) {
  std::vector<std::string> names;
  for (const TensorEntry& entry : file.layout.tensors) names.push_back(entry.name);
  return names;
}

TEST(CheckpointLayoutTest, WholeVariablesInNumberedFiles) {
  const CheckpointLayout layout = SmallLayout();  // files of 80 bytes
  ASSERT_EQ(layout.files.size(), 4u);
  EXPECT_EQ(layout.files[0].name, "model-00001-of-00002.safetensors");
  EXPECT_THAT(TensorsOf(layout.files[0]), ElementsAre("dense/kernel", "dense/bias"));
  EXPECT_THAT(TensorsOf(layout.files[1]), ElementsAre("norm/moving_mean", "scale"));
  EXPECT_EQ(layout.files[2].name, "optimizer-00001-of-00002.safetensors");
  EXPECT_THAT(TensorsOf(layout.files[2]),
              ElementsAre("adam_m/dense/kernel", "adam_m/dense/bias", "adam_m/scale"));
  EXPECT_EQ(layout.places.count("adam_v/norm/moving_mean"), 0u);
  EXPECT_EQ(layout.places.at("adam_v/scale").file, 3);
}

TEST(CheckpointLayoutTest, VariableLargerThanAFileHasItsOwn) {
  const CheckpointLayout layout = LayOutCheckpoint(
      {{.name = "a", .shape = {1}}, {.name = "big", .shape = {100}}, {.name = "c", .shape = {1}}},
      {}, 50);
  ASSERT_EQ(layout.files.size(), 3u);
  EXPECT_THAT(TensorsOf(layout.files[1]), ElementsAre("big"));
}

TEST(CheckpointLayoutTest, IndexNamesTheFileOfEachVariable) {
  const auto json = nlohmann::json::parse(ModelIndexText(SmallLayout()));
  EXPECT_EQ(json["metadata"]["total_size"], 4 * (15 + 3 + 4 + 1));
  EXPECT_EQ(json["weight_map"].size(), 4u);
  EXPECT_EQ(json["weight_map"]["scale"], "model-00002-of-00002.safetensors");
}

class CheckpointWriterTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(CreateCheckpointFiles(layout_, directory_.path()).ok()); }
  const TemporaryDirectory directory_;
  const CheckpointLayout layout_ = SmallLayout();
};

TEST_F(CheckpointWriterTest, FilesHaveFullSizeAtOnce) {
  EXPECT_EQ(NamesIn(directory_.path()).size(), 5u);
  for (const CheckpointLayout::File& file : layout_.files) {
    const std::string path = directory_.path() + "/" + file.name;
    EXPECT_EQ(std::filesystem::file_size(path), file.layout.file_size);
    EXPECT_TRUE(SafetensorsFile::Open(path).ok());
  }
  // Nobody else's files are overwritten.
  EXPECT_EQ(CreateCheckpointFiles(layout_, directory_.path()).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(CheckpointWriterTest, AdjoiningWritesAreOnePart) {
  const std::vector<float> values(15, 2.5f);
  CheckpointWriter writer(&layout_, directory_.path());
  ASSERT_TRUE(writer.Write("dense/kernel", 0, values.data(), 24).ok());
  ASSERT_TRUE(writer.Write("adam_m/dense/kernel", 0, values.data(), 60).ok());
  ASSERT_TRUE(writer.Write("dense/kernel", 24, values.data(), 36).ok());
  ASSERT_TRUE(
      writer.Write("dense/bias", 0, values.data(), 12).ok());  // the next tensor of the file
  ASSERT_TRUE(writer.Write("adam_m/dense/bias", 4, values.data(), 8).ok());  // not adjoining
  ASSERT_TRUE(writer.Write("scale", 0, values.data(), 0).ok());
  const auto parts = writer.Finish();
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[0].file, "model-00001-of-00002.safetensors");
  EXPECT_EQ((*parts)[0].offset_bytes, layout_.files[0].layout.header.size());
  EXPECT_EQ((*parts)[0].size_bytes, 72u);
  const std::vector<float> all(18, 2.5f);
  EXPECT_EQ((*parts)[0].crc32c, Crc32c(0, all.data(), 72));
  EXPECT_EQ((*parts)[2].size_bytes, 8u);
}

TEST_F(CheckpointWriterTest, RejectsWhatIsNotLaidOut) {
  const float value = 0;
  CheckpointWriter writer(&layout_, directory_.path());
  const absl::Status unknown = writer.Write("dense/kernal", 0, &value, 4);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("dense/kernal"));
  EXPECT_EQ(writer.Write("scale", 1, &value, 4).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.Write("scale", UINT64_MAX, &value, 4).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CheckpointWriterTest, FullDiskNamesPathAndReason) {
  class FullDevice : public PassingFileSystem {
    absl::StatusOr<std::unique_ptr<File>> Open(const std::string&, Mode mode) override {
      return PassingFileSystem::Open("/dev/full", mode);
    }
  };
  FullDevice disk;
  const float value = 0;
  CheckpointWriter writer(&layout_, directory_.path(), &disk);
  const absl::Status status = writer.Write("dense/kernel", 0, &value, 4);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
}

TEST_F(CheckpointWriterTest, WritesThroughNoLink) {
  const TemporaryDirectory elsewhere;
  const std::string& name = layout_.files[0].name;
  const std::string target = elsewhere.path() + "/" + name;
  WriteAll(target, "kept");
  std::filesystem::remove(directory_.path() + "/" + name);
  std::filesystem::create_symlink(target, directory_.path() + "/" + name);
  const float value = 0;
  CheckpointWriter linked_file(&layout_, directory_.path());
  EXPECT_EQ(linked_file.Write("dense/kernel", 0, &value, 4).code(),
            absl::StatusCode::kFailedPrecondition);
  const std::string link = directory_.path() + "/link";
  std::filesystem::create_directory_symlink(elsewhere.path(), link);
  CheckpointWriter linked_directory(&layout_, link);
  EXPECT_EQ(linked_directory.Write("dense/kernel", 0, &value, 4).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FileContent(target), "kept");
}

TEST_F(CheckpointWriterTest, MissingFileIsNotCreated) {
  std::filesystem::remove(directory_.path() + "/" + layout_.files[0].name);
  const float value = 0;
  CheckpointWriter writer(&layout_, directory_.path());
  EXPECT_EQ(writer.Write("dense/kernel", 0, &value, 4).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace shoal
