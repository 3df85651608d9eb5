#include "worker/job/data_error.h"

#include <gtest/gtest.h>

#include <utility>

namespace shoal {
namespace {

// What an unknown coordinator gets of the error.
std::string Shown(const absl::Status& status) {
  return TextForCoordinator(status, /*may_quote=*/false);
}
bool Shows(const absl::Status& status, const std::string& part) {
  return Shown(status).find(part) != std::string::npos;
}

TEST(DataErrorTest, OnlyFilePlaceAndCodeAreShown) {
  const absl::Status error = DataError(absl::DataLossError(
      "/etc/shadow: line 17, column root: \"$6$salt\" is no number that a float32 holds"));
  EXPECT_TRUE(Shown(error).starts_with("/etc/shadow, line 17: ")) << Shown(error);
  EXPECT_TRUE(Shows(error, "DATA_LOSS"));
  for (const char* content : {"root", "$6$salt"}) EXPECT_FALSE(Shows(error, content)) << content;
  EXPECT_EQ(TextForCoordinator(error, /*may_quote=*/true), error.message());
}

TEST(DataErrorTest, EachLineIsShown) {
  const absl::Status error = DataError(absl::InvalidArgumentError(
      "/a.npy: the record at byte 120: secret\nno path, secret: secret\n/b: example 7, secret"));
  EXPECT_TRUE(Shows(error, "/a.npy, byte 120: "));
  EXPECT_TRUE(Shows(error, "/b, example 7: "));
  EXPECT_FALSE(Shows(error, "secret"));
  EXPECT_FALSE(Shows(error, "no path"));
}

TEST(DataErrorTest, OtherErrorsAreShownWhole) {
  EXPECT_EQ(Shown(absl::FailedPreconditionError("/x: too little memory")), "/x: too little memory");
  EXPECT_TRUE(DataError(absl::OkStatus()).ok());
}

TEST(DataErrorTest, AnErrorOfABatchIsMarkedByItsCode) {
  EXPECT_FALSE(
      Shows(BatchError(absl::InvalidArgumentError("/l: example 3 has the label 42")), "42"));
  EXPECT_FALSE(Shows(BatchError(absl::OutOfRangeError("/l: example 3 has the label 42")), "42"));
  EXPECT_TRUE(Shows(BatchError(absl::InternalError("the GPU is gone")), "the GPU is gone"));
}

TEST(DataErrorTest, TheMarkStaysWithCopies) {
  absl::Status error = DataError(absl::DataLossError("secret"));
  const absl::Status copy = error;
  const absl::Status moved = std::move(error);
  EXPECT_FALSE(Shows(copy, "secret"));
  EXPECT_FALSE(Shows(moved, "secret"));
}

}  // namespace
}  // namespace shoal
