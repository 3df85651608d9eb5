#include "common/sharding/chunk_limits.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

using testing::HasSubstr;

// Variables of one tensor of so many MiB.
std::vector<Variable> Variables(int64_t mebibytes) {
  return {{.name = "w", .shape = {mebibytes << 18}}};
}

std::string Refusal(int64_t mebibytes, int64_t chunk_bytes, uint64_t window_steps) {
  const absl::Status status =
      CheckChunks(Variables(mebibytes), {.chunk_bytes = chunk_bytes}, window_steps);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ChunkLimitsTest, DefaultsSuitModelsOfAnySizeThatTrains) {
  for (const int64_t mebibytes : {0, 1, 61, 6 << 10, 1 << 20}) {
    EXPECT_EQ(Refusal(mebibytes, 1 << 20, 4096), "") << mebibytes;
  }
}

TEST(ChunkLimitsTest, TheSmallestChunksSuitASmallModel) {
  EXPECT_EQ(Refusal(4, 64, 4096), "");
  EXPECT_EQ(Refusal(64, 64, 4096), "");
}

TEST(ChunkLimitsTest, TooManyChunksAreRefusedWithTheSizeThatIsRight) {
  EXPECT_EQ(Refusal(65, 64, 4096),
            "$.strategy.chunk_bytes: is 64, which cuts the 65.0 MiB of variables into 1064960 "
            "chunks; at most 1048576 are possible, so it must be at least 128");
  EXPECT_EQ(Refusal(65, 128, 4096), "");
  EXPECT_THAT(Refusal(int64_t{17} << 20, 16 << 20, 64), HasSubstr("the model is too large"));
}

// 61 MiB of variables that took 122 GiB of the ps.
TEST(ChunkLimitsTest, AppliedSetsThatTakeMoreThanTheVariablesAreRefused) {
  EXPECT_EQ(Refusal(61, 64, 1 << 20),
            "$.strategy.window_steps: is 1048576, for which the ps keep 128.0 KiB for each of "
            "999424 chunks, 122.0 GiB in all, for 61.0 MiB of variables; it must be at most 8576, "
            "or $.strategy.chunk_bytes at least 7808");
  EXPECT_EQ(Refusal(61, 64, 8576), "");
  EXPECT_NE(Refusal(61, 64, 8640), "");
  EXPECT_EQ(Refusal(61, 7808, 1 << 20), "");
  EXPECT_NE(Refusal(61, 7744, 1 << 20), "");
}

TEST(ChunkLimitsTest, AnAppliedSetHasABitForEachStepOfTheWindow) {
  EXPECT_EQ(AppliedSetBytes(1), 8);
  EXPECT_EQ(AppliedSetBytes(4096), 512);
  EXPECT_EQ(AppliedSetBytes(4097), 520);
}

}  // namespace
}  // namespace shoal
