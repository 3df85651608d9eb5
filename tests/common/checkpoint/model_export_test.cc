#include "common/checkpoint/model_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelExportTest : public testing::Test {
 protected:
  const TemporaryDirectory run_;
  CheckpointStore store_{run_.path() + "/checkpoints"};
  const std::string target_ = run_.path() + "/out/model";
};

void ExpectModelOf(const std::string& directory, uint64_t cut_step) {
  EXPECT_THAT(NamesIn(directory), ElementsAre("model.json", "model.safetensors"));
  EXPECT_EQ(FileContent(directory + "/model.json"), SmallTexts().at("model.json"));
  const auto file = SafetensorsFile::Open(directory + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<Variable> variables = SmallVariables();
  ASSERT_EQ((*file)->tensors().size(), variables.size());
  for (size_t v = 0; v < variables.size(); ++v) {
    const TensorEntry& entry = (*file)->tensors()[v];
    EXPECT_EQ(entry.name, variables[v].name);
    EXPECT_EQ(entry.shape, variables[v].shape);
    const auto values = (*file)->ReadFloats(entry);
    ASSERT_TRUE(values.ok()) << values.status();
    for (size_t i = 0; i < values->size(); ++i) {
      EXPECT_EQ((*values)[i], SmallValue(entry.name, i, cut_step));
    }
  }
}

TEST_F(ModelExportTest, VariablesAloneWithTheModel) {
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_ + "/").ok());
  ExpectModelOf(target_, 10);
  EXPECT_THAT(NamesIn(run_.path() + "/out"), ElementsAre("model"));
}

// A moving average of the values, say.
TEST_F(ModelExportTest, ASlotInThePlaceOfTheVariablesThatHaveIt) {
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_, "adam_v").ok());
  const auto file = *SafetensorsFile::Open(target_ + "/model.safetensors");
  int of_slot = 0;
  for (const Variable& variable : SmallVariables()) {
    const std::string source = variable.has_slots() ? "adam_v/" + variable.name : variable.name;
    of_slot += variable.has_slots() ? 1 : 0;
    const TensorEntry* entry = file->Find(variable.name);
    ASSERT_NE(entry, nullptr) << variable.name;
    const std::vector<float> values = *file->ReadFloats(*entry);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], SmallValue(source, i, 10));
  }
  EXPECT_GT(of_slot, 0);
}

TEST_F(ModelExportTest, ReplacesAnEarlierModel) {
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_).ok());
  const absl::Status again = ExportModel(WriteSmallCheckpoint(&store_, 1, 20), target_);
  ASSERT_TRUE(again.ok()) << again;
  ExpectModelOf(target_, 20);
  EXPECT_THAT(NamesIn(run_.path() + "/out"), ElementsAre("model"));
}

// Says in which order the directory above is synced and trees go.
class RecordingFiles : public PassingFileSystem {
 public:
  absl::Status SyncDirectory(const std::string& directory) override {
    calls.push_back("sync " + std::filesystem::path(directory).filename().string());
    return PassingFileSystem::SyncDirectory(directory);
  }
  absl::Status RemoveTree(const std::string& directory) override {
    calls.push_back("remove " + std::filesystem::path(directory).filename().string());
    return PassingFileSystem::RemoveTree(directory);
  }
  std::vector<std::string> calls;
};

// Or the power could go with neither of them.
TEST_F(ModelExportTest, TheEarlierModelGoesWhenTheNewOneIsSureToBeInItsPlace) {
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_).ok());
  RecordingFiles files;
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 20), target_, "", &files).ok());
  EXPECT_THAT(files.calls, ElementsAre("sync model.partial", "sync out", "remove model.partial"));
}

// A file system that cannot exchange two names, and does not rename paths with this ending.
class NoExchange : public PassingFileSystem {
 public:
  explicit NoExchange(std::string fixed = "") : fixed_(std::move(fixed)) {}
  absl::Status Exchange(const std::string& a, const std::string&) override {
    return absl::UnimplementedError(a);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (!fixed_.empty() && from.ends_with(fixed_)) return absl::ResourceExhaustedError(from);
    return PassingFileSystem::Rename(from, to);
  }

 private:
  const std::string fixed_;
};

TEST_F(ModelExportTest, ReplacesAnEarlierModelWithoutAnExchange) {
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_).ok());
  NoExchange files;
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 20), target_, "", &files).ok());
  ExpectModelOf(target_, 20);
  EXPECT_THAT(NamesIn(run_.path() + "/out"), ElementsAre("model"));
}

TEST_F(ModelExportTest, AFailedRenameKeepsTheEarlierModelInItsPlace) {
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_).ok());
  const StoredCheckpoint newer = WriteSmallCheckpoint(&store_, 1, 20);
  for (const char* fixed : {".partial", "/model"}) {
    NoExchange files(fixed);
    EXPECT_EQ(ExportModel(newer, target_, "", &files).code(), absl::StatusCode::kResourceExhausted)
        << fixed;
    ExpectModelOf(target_, 10);
    EXPECT_THAT(NamesIn(run_.path() + "/out"), ElementsAre("model")) << fixed;
  }
}

TEST_F(ModelExportTest, TakesThePlaceOfALinkAndNotOfItsTarget) {
  const std::string elsewhere = run_.path() + "/elsewhere";
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 10), elsewhere).ok());
  std::filesystem::create_directory(run_.path() + "/out");
  std::filesystem::create_directory_symlink(elsewhere, target_);
  ASSERT_TRUE(ExportModel(WriteSmallCheckpoint(&store_, 1, 20), target_).ok());
  EXPECT_FALSE(std::filesystem::is_symlink(target_));
  ExpectModelOf(target_, 20);
  ExpectModelOf(elsewhere, 10);
  EXPECT_THAT(NamesIn(run_.path() + "/out"), ElementsAre("model"));
}

TEST_F(ModelExportTest, LeavesOtherThingsAlone) {
  std::filesystem::create_directories(target_);
  WriteAll(target_ + "/thesis.txt", "years of work");
  const absl::Status status = ExportModel(WriteSmallCheckpoint(&store_, 1, 10), target_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("thesis.txt"));
  EXPECT_EQ(FileContent(target_ + "/thesis.txt"), "years of work");
}

TEST_F(ModelExportTest, DamagedCheckpointLeavesNothingBehind) {
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store_, 1, 10);
  ASSERT_TRUE(ExportModel(stored, target_).ok());
  std::string text = FileContent(stored.directory + "/model-00002-of-00002.safetensors");
  text.back() ^= 1;
  WriteAll(stored.directory + "/model-00002-of-00002.safetensors", text);
  const absl::Status status = ExportModel(stored, target_);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  ExpectModelOf(target_, 10);
  EXPECT_THAT(NamesIn(run_.path() + "/out"), ElementsAre("model"));
}

TEST_F(ModelExportTest, TargetThatIsAFile) {
  WriteAll(run_.path() + "/model", "x");
  const absl::Status status =
      ExportModel(WriteSmallCheckpoint(&store_, 1, 10), run_.path() + "/model");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(run_.path() + "/model"));
}

}  // namespace
}  // namespace shoal
