#include "common/base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(VersionTest, OwnVersionIsAccepted) { EXPECT_TRUE(CheckVersion(kVersion, "worker 1").ok()); }

TEST(VersionTest, OtherVersionIsRefusedNamingBoth) {
  const absl::Status status = CheckVersion("9.9.9", "worker 1 at host:2222");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            std::string("worker 1 at host:2222 is Shoal 9.9.9, this process is Shoal ") + kVersion +
                "; all processes of a cluster must be of the same version");
}

TEST(VersionTest, GarbageIsShownShortAndPrintable) {
  const std::string message(CheckVersion("\x1b[2J" + std::string(5000, 'x'), "a peer").message());
  EXPECT_LT(message.size(), 250u);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_THAT(std::string(CheckVersion("", "a peer").message()),
              ::testing::HasSubstr("of an unknown version"));
}

}  // namespace
}  // namespace shoal
