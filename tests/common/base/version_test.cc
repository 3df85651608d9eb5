#include "common/base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"

namespace shoal {
namespace {

TEST(VersionTest, OwnVersionIsAccepted) { EXPECT_TRUE(CheckVersion(kVersion, "worker 1").ok()); }

TEST(VersionTest, OtherVersionIsRejectedNamingBoth) {
  EXPECT_THAT(CheckVersion("9.9.9", "worker 1 at host:2222"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        {"worker 1 at host:2222", "9.9.9", kVersion}));
}

TEST(VersionTest, GarbageIsShownShortAndPrintable) {
  const std::string message(CheckVersion("\x1b[2J" + std::string(5000, 'x'), "a peer").message());
  EXPECT_LT(message.size(), 250u);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_THAT(CheckVersion("", "a peer"),
              FailsWith(absl::StatusCode::kFailedPrecondition, {"a peer", kVersion}));
}

TEST(VersionTest, AnInvalidMessageNamesPeerTypeAndVersion) {
  EXPECT_THAT(InvalidMessageError("ps 1 at host:2222", "shoal.proto.ControlReply"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        {"ps 1 at host:2222 ", " shoal.proto.ControlReply;", kVersion}));
}

}  // namespace
}  // namespace shoal
