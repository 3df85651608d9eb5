#include "ps/store/value_buffers.h"

#include <gtest/gtest.h>

#include <vector>

namespace shoal {
namespace {

PsShards TwoChunks() {
  PsShards shards;
  shards.chunks.resize(2);
  shards.chunks[0].size = 20;
  shards.chunks[1].slab_offset = 32;
  shards.chunks[1].size = 100;
  shards.slab_size = 144;
  return shards;
}

TEST(ValueBuffersTest, HomesLieInTheAlignedSlab) {
  ValueBuffers buffers(TwoChunks());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.slab()) % 64, 0u);
  EXPECT_EQ(buffers.Take(0).data(), buffers.slab());
  EXPECT_EQ(buffers.Take(1).data(), buffers.slab() + 32);
  EXPECT_EQ(buffers.spare_count(), 0u);
}

TEST(ValueBuffersTest, AHeldBufferIsNotTakenAgainUntilItIsFree) {
  ValueBuffers buffers(TwoChunks());
  ValueBuffers::Hold home = buffers.Take(0);
  EXPECT_TRUE(home.sole());
  {
    const ValueBuffers::Hold reader = home;
    EXPECT_FALSE(home.sole());
    EXPECT_EQ(reader.data(), home.data());
  }
  EXPECT_TRUE(home.sole());
  const ValueBuffers::Hold spare = buffers.Take(0);
  EXPECT_NE(spare.data(), home.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(spare.data()) % 64, 0u);
  float* const old_home = home.data();
  home = ValueBuffers::Hold();
  EXPECT_EQ(buffers.Take(0).data(), old_home);
}

TEST(ValueBuffersTest, SparesAreUsedAgainByEveryChunk) {
  ValueBuffers buffers(TwoChunks());
  const ValueBuffers::Hold home0 = buffers.Take(0);
  const ValueBuffers::Hold home1 = buffers.Take(1);
  for (int i = 0; i < 100; ++i) {
    const ValueBuffers::Hold first = buffers.Take(i % 2);
    const ValueBuffers::Hold second = buffers.Take(1);
    EXPECT_NE(first.data(), second.data());
    second.data()[99] = 1;  // room for the largest chunk
  }
  EXPECT_EQ(buffers.spare_count(), 2u);
}

// As a store does for each push.
void Update(ValueBuffers& buffers, int chunk, ValueBuffers::Hold& values) {
  values = buffers.TargetOf(chunk, values);
}

TEST(ValueBuffersTest, AnUpdateStaysAtHomeUnlessThereAreReaders) {
  ValueBuffers buffers(TwoChunks());
  ValueBuffers::Hold values = buffers.Take(0);
  Update(buffers, 0, values);
  EXPECT_EQ(values.data(), buffers.slab());
  ValueBuffers::Hold reader = values;
  Update(buffers, 0, values);
  EXPECT_NE(values.data(), buffers.slab());
  float* const spare = values.data();
  Update(buffers, 0, values);
  EXPECT_EQ(values.data(), spare) << "the home is being read";
  reader = ValueBuffers::Hold();
  Update(buffers, 0, values);
  EXPECT_EQ(values.data(), buffers.slab());
}

TEST(ValueBuffersTest, IdleSparesAreFreed) {
  ValueBuffers buffers(TwoChunks());
  ValueBuffers::Hold values[2] = {buffers.Take(0), buffers.Take(1)};
  std::vector<ValueBuffers::Hold> readers;
  for (int i = 0; i < 50; ++i) {
    readers.push_back(values[i % 2]);
    Update(buffers, i % 2, values[i % 2]);
  }
  EXPECT_EQ(buffers.spare_count(), 50u);
  readers.clear();
  for (int i = 0; i < 12; ++i) Update(buffers, i % 2, values[i % 2]);
  EXPECT_EQ(buffers.spare_count(), 0u);
}

// One reader at a time is what a worker is: its spare is kept, not given back and made again.
TEST(ValueBuffersTest, SparesInUseAreKept) {
  ValueBuffers buffers(TwoChunks());
  ValueBuffers::Hold values[2] = {buffers.Take(0), buffers.Take(1)};
  ValueBuffers::Hold reader;
  for (int i = 0; i < 100; ++i) {
    reader = values[i % 2];
    Update(buffers, i % 2, values[i % 2]);
    if (i > 10) {
      ASSERT_GE(buffers.spare_count(), 1u) << i;
      ASSERT_LE(buffers.spare_count(), 2u) << i;
    }
  }
}

}  // namespace
}  // namespace shoal
