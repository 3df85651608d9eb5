#include "common/base/text/format_bytes.h"

#include <gtest/gtest.h>

#include <limits>

namespace shoal {
namespace {

TEST(FormatBytesTest, ReadsAsPeopleDo) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1 << 20), "1.0 MiB");
  EXPECT_EQ(FormatBytes(1600000), "1.5 MiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

}  // namespace
}  // namespace shoal
