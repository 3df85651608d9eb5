#include "common/security/revocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/common/base/fails_with.h"

namespace shoal {
namespace {

Certificate WithSerial(const std::string& serial) {
  return {.identity = *ParseIdentity("spiffe://shoal/job/mnist/worker/3"), .serial = serial};
}

TEST(RevocationsTest, SerialsAndIdentitiesAreRevoked) {
  const absl::StatusOr<Revocations> revoked = Revocations::Parse(
      "# left in March\n"
      "\n"
      "  4F:2A:09:c1  # ada's\r\n"
      "000abc\n"
      "spiffe://shoal/job/mnist/viewer\n"
      "0",
      "revoked");
  ASSERT_TRUE(revoked.ok()) << revoked.status();
  EXPECT_EQ(revoked->size(), 4u);
  for (const char* serial : {"4f2a09c1", "abc", "0"}) {
    EXPECT_THAT(revoked->Check(WithSerial(serial)),
                FailsWith(absl::StatusCode::kPermissionDenied, {serial}));
  }
  for (const char* serial : {"4f2a09c", "abcd", "1"})
    EXPECT_TRUE(revoked->Check(WithSerial(serial)).ok()) << serial;
  Certificate viewer = WithSerial("1");
  viewer.identity = *ParseIdentity("spiffe://shoal/job/mnist/viewer");
  EXPECT_THAT(revoked->Check(viewer),
              FailsWith(absl::StatusCode::kPermissionDenied, {"spiffe://shoal/job/mnist/viewer"}));
}

// A new certificate helps whoever lost one, but not an identity that is kept out.
TEST(RevocationsTest, TheErrorNamesTheKindOfEntry) {
  const Revocations serial = *Revocations::Parse("4f2a", "revoked");
  EXPECT_THAT(serial.Check(WithSerial("4f2a")),
              FailsWith(absl::StatusCode::kPermissionDenied, {"by its serial"}));
  const Revocations both =
      *Revocations::Parse("4f2a\nspiffe://shoal/job/mnist/worker/3", "revoked");
  EXPECT_THAT(both.Check(WithSerial("4f2a")),
              FailsWith(absl::StatusCode::kPermissionDenied, {"by its identity", "`revoked`"}));
}

TEST(RevocationsTest, AWorkerWithoutIndexIsNotAllWorkers) {
  const Revocations revoked = *Revocations::Parse("spiffe://shoal/job/mnist/worker", "revoked");
  EXPECT_TRUE(revoked.Check(WithSerial("1")).ok());
}

TEST(RevocationsTest, NothingIsRevokedByAnEmptyFile) {
  for (const char* text : {"", "\n\n", "# nobody\n"}) {
    const absl::StatusOr<Revocations> revoked = Revocations::Parse(text, "revoked");
    ASSERT_TRUE(revoked.ok()) << revoked.status();
    EXPECT_EQ(revoked->size(), 0u);
    EXPECT_TRUE(revoked->Check(WithSerial("1")).ok());
  }
}

TEST(RevocationsTest, ALineThatSaysNothingIsAnError) {
  for (const std::string line :
       {"bob", "worker/3", "0x4f2a", "4f2g", "4f:2", "4f::2a", ":4f", "4f:2a:", "4f 2a",
        "spiffe://shoal/job/mnist", "spiffe://shoal/job/mnist/worker/03", "serial=4f2a", "\x01",
        "00000000000000000000000000000000000000000"}) {
    EXPECT_THAT(Revocations::Parse("4f\n" + line + "\n", "dir/revoked").status(),
                FailsWith(absl::StatusCode::kFailedPrecondition, {"dir/revoked:2"}))
        << line;
  }
}

}  // namespace
}  // namespace shoal
