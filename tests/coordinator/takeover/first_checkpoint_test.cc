#include "coordinator/takeover/first_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/archive/keras_archive.h"
#include "common/model/keras_model.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Jobs that begin with the weights of nested.keras, whose k-th number is k / 4.
class FirstCheckpointTest : public testing::Test {
 protected:
  FirstCheckpointTest() {
    const std::string archive = SHOAL_SOURCE_DIR "/tests/common/archive/testdata/nested.keras";
    std::filesystem::copy_file(archive, archive_);
    job_.model_json = ReadArchivedModel(archive_).value();
    job_.seed = 7;
    job_.initial_weights = {archive_, ChecksumOfWeights(archive_).value()};
    store_ = std::make_unique<CheckpointStore>(directory_ / "checkpoints");
    std::filesystem::create_directory(directory_ / "checkpoints");
  }

  absl::StatusOr<StoredCheckpoint> Write() {
    model_ = ParseKerasModel(job_.model_json).value();
    optimizer_ = MakeOptimizer(optimizer_config_).value();
    layout_ = LayOutCheckpoint(model_.graph.variables(), optimizer_->slot_names());
    Manifest manifest;
    manifest.slots = optimizer_->slot_names();
    manifest.shard_map = "{}";
    const std::string job = job_.ResolvedText();
    manifest.job_fingerprint = job_.Fingerprint();
    return WriteFirstCheckpoint({.job = &job_,
                                 .variables = &model_.graph.variables(),
                                 .optimizer = optimizer_.get(),
                                 .layout = &layout_,
                                 .texts = {{kJobName, job}, {kModelName, job_.model_json}},
                                 .manifest = manifest},
                                MakeTerm(3, 4), store_.get());
  }
  std::vector<float> Values(const StoredCheckpoint& checkpoint, const std::string& tensor,
                            const Shape& shape) {
    std::vector<float> values(ElementCount(shape));
    const auto reader = CheckpointReader::Open(checkpoint.directory);
    EXPECT_TRUE(reader.ok()) << reader.status();
    const absl::Status read =
        (*reader)->Read(tensor, shape, 0, values.data(), values.size() * sizeof(float));
    EXPECT_TRUE(read.ok()) << read;
    return values;
  }

  const TemporaryDirectory directory_;
  const std::string archive_ = directory_ / "nested.keras";
  Job job_;
  std::string optimizer_config_ = R"({"class_name": "Adagrad", "config": {}})";
  KerasModel model_;
  std::unique_ptr<const Optimizer> optimizer_;
  CheckpointLayout layout_;
  std::unique_ptr<CheckpointStore> store_;
};

TEST_F(FirstCheckpointTest, HoldsWhatWasSavedAndFirstSlots) {
  const auto stored = Write();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->manifest.cut_step, 0u);
  const auto newest = store_->NewestVerified({}, nullptr);
  ASSERT_TRUE(newest.ok() && newest->has_value()) << newest.status();
  EXPECT_EQ((*newest)->directory, stored->directory);
  EXPECT_THAT(Values(*stored, "shared/kernel", {2, 3}), ElementsAre(0, .25, .5, .75, 1, 1.25));
  EXPECT_THAT(Values(*stored, "tower/norm/moving_variance", {2}), ElementsAre(5.75, 6));
  EXPECT_THAT(Values(*stored, "adagrad_accumulator/shared/kernel", {2, 3}), Each(0.1f));
}

// Who evaluates it takes the averages.
TEST_F(FirstCheckpointTest, AveragesBeginAsTheVariables) {
  optimizer_config_ = R"({"class_name": "SGD", "config": {"use_ema": true}})";
  const auto stored = Write();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_THAT(Values(*stored, optimizer_->average_slot() + "/shared/kernel", {2, 3}),
              ElementsAre(0, .25, .5, .75, 1, 1.25));
}

TEST_F(FirstCheckpointTest, VariablesNotLoadedBeginAsOnAPs) {
  const size_t name = job_.model_json.find("\"shared\"");
  for (size_t at = name; at != std::string::npos; at = job_.model_json.find("\"shared\"", at))
    job_.model_json.replace(at, 8, "\"common\"");
  const auto stored = Write();
  ASSERT_TRUE(stored.ok()) << stored.status();
  const Variable& kernel = model_.graph.variables()[0];
  ASSERT_EQ(kernel.name, "common/kernel");
  std::vector<float> seeded(6);
  InitializeRows(kernel.initializer, kernel.name, kernel.shape, job_.seed, 0, 2, seeded);
  EXPECT_EQ(Values(*stored, "common/kernel", {2, 3}), seeded);
  EXPECT_THAT(Values(*stored, "answer/kernel", {2, 1}), ElementsAre(6.25, 6.5));
}

// Else a crash before the first checkpoint would change what is trained.
TEST_F(FirstCheckpointTest, AFileThatHasChangedIsRejected) {
  std::ofstream(archive_, std::ios::app) << "x";
  const absl::Status rejected = Write().status();
  EXPECT_THAT(rejected, FailsWith(absl::StatusCode::kFailedPrecondition, {"nested.keras: "}));
  std::filesystem::remove(archive_);
  EXPECT_THAT(Write().status().message(), HasSubstr(archive_));
  EXPECT_TRUE(store_->List(nullptr)->empty());
}

}  // namespace
}  // namespace shoal
