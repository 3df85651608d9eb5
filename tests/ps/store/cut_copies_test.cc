#include "ps/store/cut_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/sharding/shard_map.h"

namespace shoal {
namespace {

using testing::Each;
using testing::IsEmpty;

// Three chunks of 16 floats, the last one frozen, each with one slot. Applying step s adds 2^s to
// values and slots, so a value tells its steps.
class CutCopiesTest : public testing::Test {
 protected:
  CutCopiesTest() {
    for (int k = 0; k < 3; ++k) {
      const Chunk& layout = shard_map_.ps(0).chunks.at(k);
      ChunkState live{.values = buffers_->Take(k), .slots = {}};
      std::fill_n(live.values.data(), layout.size, 0.0f);
      slots_.push_back(std::vector<float>(layout.size, 0));
      if (layout.has_slots()) live.slots = {slots_.back().data()};
      chunks_.emplace_back(StoredChunk::Options{.layout = &layout, .index = k, .window_steps = 64},
                           std::move(live));
    }
    cut_.emplace(CutCopies::Options{.chunks = &chunks_,
                                    .variables = &variables_,
                                    .slot_names = &slot_names_,
                                    .buffers = buffers_});
  }

  // Applies a step as the store does.
  void Apply(int chunk, uint64_t step) {
    StoredChunk& stored = chunks_[chunk];
    const uint64_t below = stored.applied_below();
    cut_->BeforeUpdate(chunk, step);
    Add(chunk, step, &stored.live());
    if (ChunkState* const copy = cut_->CopyToUpdate(chunk, step)) Add(chunk, step, copy);
    stored.MarkIn(step);
    cut_->OnApplied(below, stored.applied_below());
  }
  void Add(int chunk, uint64_t step, ChunkState* state) {
    const size_t size = chunks_[chunk].size();
    ValueBuffers::Hold target = buffers_->TargetOf(chunk, state->values);
    for (size_t i = 0; i < size; ++i) {
      target.data()[i] = state->values.data()[i] + static_cast<float>(1 << step);
      for (float* const slot : state->slots) slot[i] += static_cast<float>(1 << step);
    }
    state->values = std::move(target);
    ++state->version;
  }

  const std::vector<Variable> variables_ = {
      {.name = "a", .shape = {16}},
      {.name = "b", .shape = {16}},
      {.name = "frozen", .shape = {16}, .rule = UpdateRule::kFrozen}};
  const std::vector<std::string> slot_names_ = {"momentum"};
  const ShardMap shard_map_{variables_, 1, {.min_shard_bytes = 64, .chunk_bytes = 64}};
  const std::shared_ptr<ValueBuffers> buffers_ = std::make_shared<ValueBuffers>(shard_map_.ps(0));
  std::vector<std::vector<float>> slots_;
  std::vector<StoredChunk> chunks_;
  std::optional<CutCopies> cut_;
};

TEST_F(CutCopiesTest, NothingIsCopiedWithoutACut) {
  Apply(0, 0);
  EXPECT_EQ(cut_->copy(0), nullptr);
  EXPECT_EQ(cut_->step(), std::nullopt);
  EXPECT_FALSE(cut_->Ready());
  EXPECT_EQ(cut_->Read(0, 1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CutCopiesTest, ACopyHasExactlyTheStepsBelow) {
  ASSERT_EQ(cut_->Start(2), std::nullopt);
  Apply(0, 0);
  EXPECT_EQ(cut_->copy(0), nullptr) << "the live chunk is in the cut";
  Apply(0, 2);
  Apply(0, 3);
  EXPECT_FALSE(cut_->Ready());
  Apply(0, 1);
  Apply(1, 1);
  Apply(1, 0);
  ASSERT_TRUE(cut_->Ready());
  for (const int chunk : {0, 1}) {
    EXPECT_THAT(cut_->Part(chunk, 0), Each(3)) << chunk;
    EXPECT_THAT(cut_->Part(chunk, 1), Each(3)) << chunk;
  }
  EXPECT_EQ(cut_->Read(0, 2)->version, 2u);
  EXPECT_THAT(chunks_[0].values(), Each(15));
  EXPECT_EQ(cut_->copy(1), nullptr);
  EXPECT_THAT(cut_->Part(2, 0), Each(0)) << "a frozen chunk delays no cut";
  EXPECT_THAT(cut_->Part(2, 1), IsEmpty());
}

TEST_F(CutCopiesTest, AStepFromItOnRejectsTheCut) {
  Apply(1, 4);
  EXPECT_EQ(cut_->Start(4), 4u);
  EXPECT_EQ(cut_->step(), std::nullopt);
  EXPECT_EQ(cut_->Start(5), std::nullopt);
}

TEST_F(CutCopiesTest, ANewCutDropsTheCopiesOfTheOldOne) {
  ASSERT_EQ(cut_->Start(1), std::nullopt);
  Apply(0, 1);
  EXPECT_NE(cut_->copy(0), nullptr);
  ASSERT_EQ(cut_->Start(2), std::nullopt);
  EXPECT_EQ(cut_->copy(0), nullptr);
}

TEST_F(CutCopiesTest, DroppedPartsAreNotCopied) {
  ASSERT_EQ(cut_->Start(0), std::nullopt);
  ASSERT_TRUE(cut_->Ready());
  cut_->DropSlots(0);
  cut_->DropChunk(1);
  Apply(0, 0);
  Apply(1, 0);
  ASSERT_NE(cut_->copy(0), nullptr);
  EXPECT_THAT(cut_->copy(0)->slots, IsEmpty());
  EXPECT_THAT(cut_->Part(0, 0), Each(0));
  EXPECT_THAT(cut_->Part(0, 1), IsEmpty());
  EXPECT_EQ(cut_->copy(1), nullptr);
  EXPECT_THAT(cut_->Part(1, 0), IsEmpty());
  EXPECT_EQ(cut_->Read(1, 0).status().code(), absl::StatusCode::kFailedPrecondition);
  cut_->End();
  ASSERT_EQ(cut_->Start(1), std::nullopt);
  Apply(1, 1);
  EXPECT_THAT(cut_->Part(1, 1), Each(1)) << "the next cut needs everything again";
}

TEST_F(CutCopiesTest, PiecesAreNamedAsInACheckpoint) {
  ASSERT_EQ(cut_->Start(0), std::nullopt);
  const std::vector<CutCopies::Piece> pieces = cut_->CopyPieces(1);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].tensor, "b");
  EXPECT_EQ(pieces[1].tensor, "momentum/b");
  EXPECT_EQ(pieces[1].offset_bytes, 0u);
  EXPECT_EQ(pieces[1].values.size(), 16u);
}

TEST_F(CutCopiesTest, ARoundMustNotStraddleTheCut) {
  EXPECT_TRUE(cut_->CheckRound({.first = 0, .count = 4}, 1, 0).ok());
  ASSERT_EQ(cut_->Start(4), std::nullopt);
  EXPECT_TRUE(cut_->CheckRound({.first = 0, .count = 4}, 1, 0).ok());
  EXPECT_TRUE(cut_->CheckRound({.first = 4, .count = 4}, 5, 0).ok());
  EXPECT_EQ(cut_->CheckRound({.first = 2, .count = 4}, 3, 0).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CutCopiesTest, AReaderKeepsTheValuesAfterTheEnd) {
  ASSERT_EQ(cut_->Start(0), std::nullopt);
  const absl::StatusOr<ChunkSnapshot> read = cut_->Read(0, 0);
  ASSERT_TRUE(read.ok()) << read.status();
  cut_->End();
  Apply(0, 0);
  Apply(0, 1);
  float value = 1;
  CopyPayload({.fields = {}, .payload = read->payload}, 0, &value, sizeof(value));
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cut_->Read(99, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shoal
