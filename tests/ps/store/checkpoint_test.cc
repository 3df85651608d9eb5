// Writing a cut and loading it again, by any number of ps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/checkpoint/checkpoint_store.h"
#include "ps/store/store_loading.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

class StoreCheckpointTest : public testing::Test {
 protected:
  // Lets `ps_count` ps apply `steps` steps, writes them at the cut behind, and returns what they
  // had.
  Tensors Write(const std::string& optimizer, int ps_count, uint64_t steps) {
    CheckpointStore checkpoints(root_.path());
    directory_ = *checkpoints.CreateDirectory(steps, 1);
    const auto slots = MakeOptimizer(optimizer).value()->slot_names();
    const CheckpointLayout layout = LayOutCheckpoint(TestVariables(), slots);
    EXPECT_TRUE(CreateCheckpointFiles(layout, directory_).ok());
    Tensors tensors;
    std::vector<WrittenPart> parts;
    for (int p = 0; p < ps_count; ++p) {
      const auto store = SeededStore({.optimizer = optimizer, .ps_index = p, .ps_count = ps_count});
      for (uint64_t step = 0; step < steps; ++step) {
        for (int k = 0; k < PushedChunks(*store); ++k) {
          const std::vector<float> gradient(store->chunk_size(k), 0.5f + static_cast<float>(step));
          EXPECT_TRUE(store->Push(GradientMessage(gradient), step, k, 0).ok());
        }
      }
      EXPECT_EQ(store->cut().Start(steps), std::nullopt);
      CollectCut(*store, &tensors);
      CheckpointWriter writer(&layout, directory_);
      for (int k = 0; k < store->chunk_count(); ++k) {
        for (const CutCopies::Piece& piece : store->cut().CopyPieces(k)) {
          EXPECT_TRUE(writer
                          .Write(piece.tensor, piece.offset_bytes, piece.values.data(),
                                 piece.values.size() * sizeof(float))
                          .ok());
        }
      }
      const auto written = writer.Finish();
      EXPECT_TRUE(written.ok()) << written.status();
      parts.insert(parts.end(), written->begin(), written->end());
    }
    Manifest manifest;
    manifest.timeline = uint64_t{1} << 32;
    manifest.cut_step = steps;
    manifest.slots = slots;
    manifest.shard_map = "{}";
    const auto committed = checkpoints.Commit(directory_, layout, parts, {}, manifest);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return tensors;
  }

  const TemporaryDirectory root_;
  std::string directory_;
};

const char kAdam[] = "\"adam\"";

absl::Status LoadAdam(const std::string& directory) {
  const auto store = MakeTestStore({.optimizer = kAdam});
  return FillFromCheckpoint(directory, RealFileSystem(), store.get());
}

TEST_F(StoreCheckpointTest, WrittenByOneLoadedByThree) {
  const Tensors before = Write(kAdam, 1, 5);
  EXPECT_EQ(before.size(), TestVariables().size() + 2 * 4);
  Tensors after;
  for (int p = 0; p < 3; ++p) {
    const auto store = MakeTestStore({.optimizer = kAdam, .ps_index = p, .ps_count = 3, .seed = 9});
    const absl::Status loaded = FillFromCheckpoint(directory_, RealFileSystem(), store.get());
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(store->base(), 5u);
    EXPECT_EQ(store->cut().Start(4), 4u);
    ASSERT_EQ(store->cut().Start(5), std::nullopt);
    ASSERT_TRUE(store->cut().Ready());
    CollectCut(*store, &after);
    for (int k = 0; k < store->chunk_count(); ++k) EXPECT_EQ(store->Read(k)->version, 5u);
    // Steps below the cut are known; the counter goes on from it.
    const Message gradient = GradientMessage(std::vector<float>(store->chunk_size(0), 1));
    EXPECT_TRUE(store->Push(gradient, 4, 0, 5)->repeated);
    EXPECT_EQ(store->Push(gradient, 5, 0, 5)->version, 6u);
  }
  EXPECT_EQ(after, before);
}

TEST_F(StoreCheckpointTest, WrittenByThreeLoadedByTwo) {
  const Tensors before = Write(CountingSgd(0.9), 3, 4);
  Tensors after;
  for (int p = 0; p < 2; ++p) {
    const auto store =
        MakeTestStore({.optimizer = CountingSgd(0.9), .ps_index = p, .ps_count = 2, .seed = 9});
    ASSERT_TRUE(FillFromCheckpoint(directory_, RealFileSystem(), store.get()).ok());
    ASSERT_EQ(store->cut().Start(4), std::nullopt);
    CollectCut(*store, &after);
  }
  EXPECT_EQ(after, before);
}

// Training that is interrupted by a load ends with the same bits, iteration counters included.
TEST_F(StoreCheckpointTest, GoesOnAsIfNothingHadBeen) {
  Write(kAdam, 1, 3);
  const auto loaded = MakeTestStore({.optimizer = kAdam});
  ASSERT_TRUE(FillFromCheckpoint(directory_, RealFileSystem(), loaded.get()).ok());
  const auto through = SeededStore({.optimizer = kAdam});
  for (uint64_t step = 0; step < 6; ++step) {
    for (int k = 0; k < PushedChunks(*through); ++k) {
      const Message gradient = GradientMessage(
          std::vector<float>(through->chunk_size(k), 0.5f + static_cast<float>(step)));
      ASSERT_TRUE(through->Push(gradient, step, k, 0).ok());
      EXPECT_EQ(loaded->Push(gradient, step, k, 0)->repeated, step < 3);
    }
  }
  Tensors a, b;
  CollectValues(*through, &a);
  CollectValues(*loaded, &b);
  EXPECT_EQ(a, b);
}

TEST_F(StoreCheckpointTest, SlotsOfAnotherOptimizerAreNamed) {
  Write(CountingSgd(0.9), 1, 1);
  const absl::Status status = LoadAdam(directory_);
  EXPECT_THAT(status,
              FailsWith(absl::StatusCode::kFailedPrecondition, {"adam_m, adam_v", "sgd_momentum"}));
}

TEST_F(StoreCheckpointTest, DamageIsNamed) {
  Write(kAdam, 1, 1);
  EXPECT_FALSE(LoadAdam(root_ / "none").ok());
  const std::string file = directory_ + "/model-00001-of-00001.safetensors";
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-3, std::ios::end);
  const char byte = static_cast<char>(stream.get() ^ 1);
  stream.seekp(-3, std::ios::end);
  stream.put(byte);
  stream.close();
  const absl::Status status = LoadAdam(directory_);
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss, {"model-00001-of-00001.safetensors"}));
}

}  // namespace
}  // namespace shoal
