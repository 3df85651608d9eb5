#include "worker/session/input_wait_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(InputWaitShareTest, LogsWhenTheShareGetsLargeOrSmall) {
  InputWaitShare share;
  EXPECT_EQ(share.StepDone(seconds(1), seconds(59)), "");
  EXPECT_THAT(share.StepDone(seconds(0), seconds(1)),
              AllOf(HasSubstr(" 2% "), Not(HasSubstr("cache"))));
  EXPECT_EQ(share.StepDone(seconds(5), seconds(60)), "");
  EXPECT_EQ(share.StepDone(seconds(20), seconds(30)), "");
  EXPECT_THAT(share.StepDone(seconds(10), seconds(30)),
              AllOf(HasSubstr(" 50% "), HasSubstr("\"cache\"")));
  EXPECT_EQ(share.StepDone(seconds(100), seconds(200)), "");
  EXPECT_THAT(share.StepDone(seconds(0), seconds(60)), HasSubstr(" 0% "));
}

}  // namespace
}  // namespace shoal
