// What is left of checkpoints when the machine dies: on a disk that loses what was not synced.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/model_export.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/simulation/simulated/simulated_disk.h"

namespace shoal {
namespace {

constexpr uint64_t kSeeds = 100;

class PowerLossTest : public testing::Test {
 protected:
  void LosePower(uint64_t seed) {
    Random random(seed);
    disk_.LosePower(&random);
  }
  SimulatedDisk disk_;
};

TEST_F(PowerLossTest, ACommittedCheckpointLasts) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CheckpointStore store("/run/checkpoints", &disk_);
    const StoredCheckpoint stored = WriteSmallCheckpoint(&store, 1, seed);
    LosePower(seed);
    EXPECT_TRUE(store.Verify(stored).ok()) << store.Verify(stored);
  }
}

// Its writer died between naming the manifest and making that last.
TEST_F(PowerLossTest, ACheckpointFoundWholeLasts) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CheckpointStore store("/run/checkpoints", &disk_);
    const StoredCheckpoint stored = WriteSmallCheckpoint(&store, 1, seed);
    const std::string manifest = stored.directory + "/manifest.json";
    ASSERT_TRUE(disk_.Rename(manifest, manifest + ".tmp").ok());
    ASSERT_TRUE(disk_.SyncDirectory(stored.directory).ok());
    ASSERT_TRUE(disk_.Rename(manifest + ".tmp", manifest).ok());
    CheckpointStore successor("/run/checkpoints", &disk_);
    const auto found = successor.NewestVerified({}, nullptr);
    ASSERT_TRUE(found.ok() && found->has_value());
    ASSERT_EQ((*found)->directory, stored.directory);
    LosePower(seed);
    EXPECT_TRUE(successor.Verify(stored).ok());
  }
}

TEST_F(PowerLossTest, ARemovedCheckpointIsWholeOrGone) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string root = "/run" + std::to_string(seed);
    CheckpointStore store(root, &disk_);
    const StoredCheckpoint oldest = WriteSmallCheckpoint(&store, 1, 10);
    for (const uint64_t step : {20, 30}) WriteSmallCheckpoint(&store, 1, step);
    // Every second time somebody has died after removing the manifest.
    if (seed % 2 == 0) {
      ASSERT_TRUE(disk_.RemoveFile(oldest.directory + "/manifest.json").ok());
    }
    CheckpointStore successor(root, &disk_);
    const auto listed = successor.List(nullptr);
    for (size_t i = 0; i < 2; ++i) ASSERT_TRUE(successor.Verify((*listed)[i]).ok());
    ASSERT_TRUE(successor.RemoveOld(1).ok());
    LosePower(seed);
    const auto left = successor.List(nullptr);
    ASSERT_TRUE(left.ok());
    for (const StoredCheckpoint& each : *left) {
      EXPECT_TRUE(successor.Verify(each).ok()) << "seed " << seed << ": " << each.directory;
    }
  }
}

// The name of the partial directory is free as soon as the model has its own.
TEST_F(PowerLossTest, AModelLeavesTheDirectoryOfAnotherAlone) {
  CheckpointStore store("/run/checkpoints", &disk_);
  const StoredCheckpoint stored = WriteSmallCheckpoint(&store, 1, 10);
  disk_.on_renamed = [this](const std::string& path) {
    if (path != "/run/model") return;
    EXPECT_TRUE(disk_.MakeDirectory("/run/model.partial").ok());
  };
  ASSERT_TRUE(ExportModel(stored, "/run/model", /*slot=*/"", &disk_).ok());
  EXPECT_TRUE(disk_.IsDirectory("/run/model.partial")) << "somebody else writes there now";
}

}  // namespace
}  // namespace shoal
