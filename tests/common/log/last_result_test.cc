#include "common/log/last_result.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(LastResultTest, AFailureIsNewWhenItChanges) {
  LastResult last;
  EXPECT_TRUE(last.result().ok());
  EXPECT_FALSE(last.IsNewFailure(absl::OkStatus()));
  EXPECT_TRUE(last.IsNewFailure(absl::UnavailableError("a")));
  EXPECT_FALSE(last.IsNewFailure(absl::UnavailableError("a")));
  EXPECT_TRUE(last.IsNewFailure(absl::UnavailableError("b")));
  EXPECT_EQ(last.result().message(), "b");
  EXPECT_FALSE(last.IsNewFailure(absl::OkStatus()));
  EXPECT_TRUE(last.IsNewFailure(absl::UnavailableError("b")));
}

}  // namespace
}  // namespace shoal
