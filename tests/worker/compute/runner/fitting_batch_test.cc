#include "worker/compute/runner/fitting_batch.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

class FittingBatchTest : public ::testing::Test {
 protected:
  // The largest that fits where one of `too_many` does not.
  int64_t Find(int64_t too_many, int64_t available,
               const std::function<int64_t(int64_t)>& bytes_of) {
    plans_ = 0;
    const auto found = LargestFittingBatch(
        {.examples = too_many, .needed_bytes = bytes_of(too_many), .available_bytes = available},
        [&](int64_t examples) {
          ++plans_;
          EXPECT_GE(examples, 1);
          EXPECT_LT(examples, too_many);
          return bytes_of(examples);
        });
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }

  int plans_ = 0;
};

TEST_F(FittingBatchTest, OfMemoryThatGrowsEvenlyItIsTheLargest) {
  const auto bytes_of = [](int64_t examples) { return 1000 + 7 * examples; };
  for (const int64_t fits : {1, 2, 3, 77, 254, 255}) {
    EXPECT_EQ(Find(256, bytes_of(fits), bytes_of), fits);
    EXPECT_EQ(Find(256, bytes_of(fits) + 6, bytes_of), fits);
    EXPECT_LE(plans_, 4);
  }
  EXPECT_EQ(Find(2, bytes_of(1), bytes_of), 1);
}

TEST_F(FittingBatchTest, ItIsNoneWhereNotOneFits) {
  const auto bytes_of = [](int64_t examples) { return 1000 + examples; };
  EXPECT_EQ(Find(256, 1000, bytes_of), 0);
  EXPECT_EQ(plans_, 1);
  EXPECT_EQ(Find(1, 1000, bytes_of), 0);
}

// Of memory that is rounded up, or shared out otherwise for some sizes, it fits and is near.
TEST_F(FittingBatchTest, TheFoundBatchFits) {
  const auto bytes_of = [](int64_t examples) {
    return (1000 + 7 * examples + (examples % 3) * 11) / 512 * 512 + 512;
  };
  for (int64_t available = bytes_of(1); available < bytes_of(4096); available += 1733) {
    const int64_t found = Find(4096, available, bytes_of);
    EXPECT_LE(bytes_of(found), available);
    // Within some percent and two steps.
    EXPECT_GE(7 * found, (available - 1000) * 29 / 30 - 2 * 512) << available;
    EXPECT_LE(plans_, 8);
  }
}

// The device has the bytes, but not in one piece.
TEST_F(FittingBatchTest, ItIsSmallerThanWhatDidNotFit) {
  const auto bytes_of = [](int64_t examples) { return 1000 + 7 * examples; };
  EXPECT_EQ(Find(256, 1 << 20, bytes_of), 255);
}

TEST_F(FittingBatchTest, AFailureIsPassedOn) {
  const auto fails = [](int64_t) -> absl::StatusOr<int64_t> {
    return absl::InternalError("no plan");
  };
  EXPECT_EQ(LargestFittingBatch({256, 2000, 1000}, fails).status().message(), "no plan");
}

}  // namespace
}  // namespace shoal
