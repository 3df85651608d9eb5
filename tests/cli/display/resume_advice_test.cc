#include "cli/display/resume_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ResumeAdviceTest, TheSavedAndTheLostStepsAreCounted) {
  EXPECT_THAT(DescribeSavedSteps({.checkpoint = 231, .done = 231}),
              AllOf(HasSubstr(" 231 steps"), Not(HasSubstr("lost"))));
  EXPECT_EQ(DescribeSavedSteps({.checkpoint = 231}),
            DescribeSavedSteps({.checkpoint = 231, .done = 231}));
  EXPECT_THAT(DescribeSavedSteps({.checkpoint = 231, .total = 1000, .done = 660}),
              AllOf(HasSubstr(" 231 of 1000 steps"), HasSubstr(" 429 more steps")));
  EXPECT_THAT(DescribeSavedSteps({}), Not(HasSubstr("lost")));
  EXPECT_THAT(DescribeSavedSteps({.done = 1}), AllOf(HasSubstr(" 1 step "), HasSubstr("lost")));
}

TEST(ResumeAdviceTest, TheCommandIsTheLastLineBelowTheStep) {
  EXPECT_THAT(AdviseToResume({.checkpoint = 231}, "shoal train job.json"),
              AllOf(HasSubstr(" 231:\n"), testing::EndsWith("\n  shoal train job.json")));
  EXPECT_THAT(AdviseToResume({}, "shoal train job.json"),
              AllOf(testing::EndsWith(":\n  shoal train job.json"), Not(HasSubstr("step"))));
}

}  // namespace
}  // namespace shoal
