#include "cli/flags/output_ending.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(OutputEndingTest, AFileSaysByItsEndingHowItIsWritten) {
  const std::string endings[] = {".npy", ".csv"};
  EXPECT_EQ(EndingOf("a/b.CSV", endings).value(), 1u);
  EXPECT_EQ(EndingOf("a.csv/b", endings).status().message(),
            "--output a.csv/b: must end in .npy or .csv");
}

}  // namespace
}  // namespace shoal
