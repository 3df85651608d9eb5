#include "common/sharding/chunk_limits.h"

#include <gmock/gmock.h>

#include "common/rpc/grpc/grpc_network.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Variables of one tensor of so many MiB.
std::vector<Variable> Variables(int64_t mebibytes) {
  return {{.name = "w", .shape = {mebibytes << 18}}};
}

std::string Rejection(int64_t mebibytes, int64_t chunk_bytes, uint64_t window_steps) {
  const absl::Status status =
      CheckChunks(Variables(mebibytes), {.chunk_bytes = chunk_bytes}, window_steps);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ChunkLimitsTest, DefaultsSuitModelsOfAnySizeThatTrains) {
  for (const int64_t mebibytes : {0, 1, 61, 6 << 10, 256 << 10}) {
    EXPECT_EQ(Rejection(mebibytes, 1 << 20, 4096), "") << mebibytes;
  }
}

TEST(ChunkLimitsTest, TheSmallestChunksSuitASmallModel) {
  EXPECT_EQ(Rejection(4, 64, 4096), "");
  EXPECT_EQ(Rejection(16, 64, 4096), "");
}

TEST(ChunkLimitsTest, TooManyChunksAreRejectedWithTheSizeThatIsRight) {
  EXPECT_EQ(Rejection(61, 64, 4096),
            "$.strategy.chunk_bytes: is 64, which cuts the 61.0 MiB of variables into 999424 "
            "chunks; at most 262144 are possible, so it must be at least 256");
  EXPECT_EQ(Rejection(61, 256, 4096), "");
  EXPECT_THAT(Rejection(int64_t{5} << 20, 16 << 20, 64),
              HasSubstr("$.strategy.chunk_bytes: is 16777216"));
}

// 16 MiB of variables that took 32 GiB of the ps.
TEST(ChunkLimitsTest, AppliedSetsThatTakeMoreThanTheVariablesAreRejected) {
  EXPECT_EQ(Rejection(16, 64, 1 << 20),
            "$.strategy.window_steps: is 1048576, for which the ps keep 128.0 KiB for each of "
            "262144 chunks, 32.0 GiB in all, for 16.0 MiB of variables; it must be at most 32768, "
            "or $.strategy.chunk_bytes at least 2048");
  EXPECT_EQ(Rejection(16, 64, 32768), "");
  EXPECT_NE(Rejection(16, 64, 32769), "");
  EXPECT_EQ(Rejection(16, 2048, 1 << 20), "");
  EXPECT_NE(Rejection(16, 1984, 1 << 20), "");
}

TEST(ChunkLimitsTest, AVariableThatMustBeOneChunkIsRejectedWhereItIsLarger) {
  const auto rejection = [](int64_t floats, UpdateRule rule) {
    const std::vector<Variable> variables = {
        {.name = "b", .shape = {10}}, {.name = "fc/kernel", .shape = {floats}, .rule = rule}};
    return std::string(CheckChunks(variables, {.whole_variables = true}, 4096).message());
  };
  EXPECT_EQ(rejection(4 << 20, UpdateRule::kOptimizer), "");
  EXPECT_EQ(rejection((4 << 20) + 1, UpdateRule::kFrozen), "");
  EXPECT_THAT(
      rejection(8 << 20, UpdateRule::kOptimizer),
      AllOf(HasSubstr("$.optimizer: "), HasSubstr(" 16.0 MiB"),
            HasSubstr("\"fc/kernel\" of shape (8388608,) has 32.0 MiB"), HasSubstr("AdamW")));
}

// With what else a push says.
TEST(ChunkLimitsTest, TheTransportHasRoomForTheLargestChunk) {
  EXPECT_GE(kMaxExchangeBytes, kMaxChunkBytes + (64 << 10));
  EXPECT_GE(GrpcNetwork::Options().max_message_bytes, kMaxChunkBytes + (64 << 10));
}

TEST(ChunkLimitsTest, AnAppliedSetHasABitForEachStepOfTheWindow) {
  EXPECT_EQ(AppliedSetBytes(1), 8);
  EXPECT_EQ(AppliedSetBytes(4096), 512);
  EXPECT_EQ(AppliedSetBytes(4097), 520);
}

}  // namespace
}  // namespace shoal
