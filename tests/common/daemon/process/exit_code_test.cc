#include "common/daemon/process/exit_code.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(ExitCodeTest, SaysWhetherStartingAgainHelps) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 65);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 78);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("")), 78);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 78);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 78);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("fenced off")), 77);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), 143);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 138);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 138);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 138);
  for (const int useless : {64, 65, 77, 78}) EXPECT_TRUE(IsRestartUseless(useless)) << useless;
  for (const int worth_it : {1, 127, 138, 143}) EXPECT_FALSE(IsRestartUseless(worth_it));
}

}  // namespace
}  // namespace shoal
