#include "cli/flags/output_ending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"

namespace shoal {
namespace {

TEST(OutputEndingTest, AFileSaysByItsEndingHowItIsWritten) {
  const std::string endings[] = {".npy", ".csv"};
  EXPECT_EQ(EndingOf("a/b.CSV", endings).value(), 1u);
  EXPECT_THAT(
      EndingOf("a.csv/b", endings).status(),
      FailsWith(absl::StatusCode::kInvalidArgument, {"--output a.csv/b: ", ".npy or .csv"}));
}

}  // namespace
}  // namespace shoal
