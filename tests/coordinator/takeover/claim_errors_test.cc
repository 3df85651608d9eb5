#include "coordinator/takeover/claim_errors.h"

#include <string>

#include "common/base/crc32c.h"
#include "common/base/term.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

proto::Claimant Ada() {
  proto::Claimant claimant;
  claimant.set_address("ada:2222");
  claimant.set_host("host-of-ada");
  claimant.set_pid(7);
  claimant.set_run_directory("/runs/ada");
  return claimant;
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TEST(ClaimErrorsTest, AnotherJobNamesBothFingerprintsAndTheDrain) {
  proto::Claimed claimed;
  claimed.set_job_fingerprint(0xabc);
  const absl::Status status = PsOfAnotherJob(DescribePs(1, "b:1"), claimed, 0xdef);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status),
              AllOf(StartsWith("ps 1 at b:1 "), HasSubstr(ChecksumText(0xabc)),
                    HasSubstr(ChecksumText(0xdef)), HasSubstr("shoal drain chief RUN_DIR")));
}

TEST(ClaimErrorsTest, AnImplausibleTermNamesTheHighestAndTheRestart) {
  const PromisedTerm term = {.promised = MakeTerm(9, 1), .highest = MakeTerm(2, 1)};
  const absl::Status status = PsWithImplausibleTerm(DescribePs(1, "b:1"), term);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status),
              AllOf(StartsWith("ps 1 at b:1 "), HasSubstr(TermText(term.promised)),
                    HasSubstr(TermText(term.highest)), HasSubstr("shoal-coordinator")));
}

TEST(ClaimErrorsTest, APsInUseNamesItsCoordinatorAndTheCommands) {
  const absl::Status status = PsInUse(DescribePs(1, "b:1"), Ada());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status),
              AllOf(StartsWith("ps 1 at b:1 "), HasSubstr("/runs/ada"),
                    HasSubstr("shoal drain chief ada:2222"), HasSubstr("--take_over")));
}

TEST(ClaimErrorsTest, FencedOffNamesBothTermsAndTheStatusCommand) {
  const NewerTerm term = {.promised = MakeTerm(9, 1), .own = MakeTerm(2, 1)};
  const absl::Status status = FencedOff(term, Ada());
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(status), AllOf(HasSubstr(TermText(term.promised)), HasSubstr(TermText(term.own)),
                                  HasSubstr("shoal status ada:2222")));
  EXPECT_THAT(Text(FencedOff(term, {})), HasSubstr("shoal status RUN_DIR"));
}

// A peer sends the address, and a user may paste the command into a shell.
TEST(ClaimErrorsTest, AnAddressIsOneWordOfItsCommand) {
  proto::Claimant claimant = Ada();
  claimant.set_address("a:1; rm x");
  EXPECT_THAT(Text(PsInUse("ps 0", claimant)), HasSubstr("shoal drain chief 'a:1; rm x'"));
  claimant.clear_address();
  EXPECT_THAT(Text(PsInUse("ps 0", claimant)), Not(HasSubstr("shoal drain chief")));
}

}  // namespace
}  // namespace shoal
