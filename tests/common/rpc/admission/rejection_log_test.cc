#include "common/rpc/admission/rejection_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RejectionLogTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines_;
  RejectionLog log_{{.warn = [this](const std::string& line) { lines_.push_back(line); },
                     .period = std::chrono::seconds(60),
                     .max_reasons = 3}};
};

TEST_F(RejectionLogTest, LogsAReasonOnceInAPeriod) {
  for (int second = 0; second < 60; ++second) {
    log_.Add(std::chrono::seconds(second), "worker/1 has expired", absl::StrCat("at ", second));
  }
  EXPECT_THAT(lines_, ElementsAre("at 0"));
  log_.Add(std::chrono::seconds(60), "worker/1 has expired", "at 60");
  EXPECT_THAT(lines_, ElementsAre("at 0", "at 60"));
}

TEST_F(RejectionLogTest, LogsOtherReasonsMeanwhile) {
  log_.Add({}, "worker/1", "one");
  log_.Add({}, "worker/2", "two");
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
}

TEST_F(RejectionLogTest, LogsALimitedNumberOfReasons) {
  for (int i = 0; i < 1000; ++i) log_.Add({}, absl::StrCat("reason ", i), absl::StrCat("text ", i));
  ASSERT_THAT(lines_, SizeIs(4));
  EXPECT_EQ(lines_[2], "text 2");
  EXPECT_THAT(lines_[3], ::testing::HasSubstr("60 s")) << "says that no more follow";
  log_.Add(std::chrono::seconds(60), "reason 999", "again");
  EXPECT_EQ(lines_.back(), "again");
}

TEST_F(RejectionLogTest, ComparesTheBeginningOfALongReason) {
  const std::string begin(512, 'a');
  log_.Add({}, begin + "b", "one");
  log_.Add({}, begin + "c", "two");
  EXPECT_THAT(lines_, ElementsAre("one"));
}

TEST(RejectionLogWithoutWarn, LogsNothing) {
  RejectionLog log({.warn = nullptr});
  log.Add({}, "reason", "text");
}

}  // namespace
}  // namespace shoal
