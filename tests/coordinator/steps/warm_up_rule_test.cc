#include "coordinator/steps/warm_up_rule.h"

#include <gtest/gtest.h>

#include <deque>

namespace shoal {
namespace {

// Leases all that it may from `step` on, to `out`; returns the first that it may not.
uint64_t LeaseAll(WarmUpRule& rule, uint64_t step, std::deque<uint64_t>* out) {
  for (; rule.MayLease({.step = step}) && out->size() < 100; ++step) {
    rule.Leased(step);
    out->push_back(step);
  }
  return step;
}

TEST(WarmUpRuleTest, OneStepIsOutAtFirstAndThenAsManyAsThereAreWorkers) {
  WarmUpRule rule(/*warmup_steps=*/30, /*workers=*/4);
  std::deque<uint64_t> out;
  uint64_t next = 0;
  size_t before = 1;
  while (next < 29) {
    next = LeaseAll(rule, next, &out);
    EXPECT_GE(out.size(), before);
    EXPECT_EQ(out.size(), 1 + next * 3 / 30) << next;
    before = out.size();
    rule.Done(out.front());
    out.pop_front();
  }
  EXPECT_EQ(before, 3u);
  LeaseAll(rule, next, &out);
  EXPECT_EQ(out.size(), 100u) << "then there is no rule any more";
}

TEST(WarmUpRuleTest, AReturnedStepCountsAsOut) {
  WarmUpRule rule(30, 4);
  rule.Leased(0);
  EXPECT_FALSE(rule.MayLease({.step = 1}));
  EXPECT_TRUE(rule.MayLease({.step = 0, .came_back = true}));
  rule.Leased(0);
  rule.Done(0);
  EXPECT_TRUE(rule.MayLease({.step = 1}));
}

TEST(WarmUpRuleTest, OneWorkerGoesOneStepAfterTheOther) {
  WarmUpRule rule(2, 1);
  rule.Leased(0);
  EXPECT_FALSE(rule.MayLease({.step = 1}));
  EXPECT_TRUE(rule.MayLease({.step = 2}));
}

TEST(WarmUpRuleTest, TheStrategySaysWhetherThereIsOne) {
  Job::Strategy strategy;
  EXPECT_EQ(MakeLeaseRule(strategy, std::nullopt), nullptr);
  strategy.warmup_steps = 30;
  strategy.workers = 4;
  const std::unique_ptr<LeaseRule> rule = MakeLeaseRule(strategy, std::nullopt);
  ASSERT_NE(rule, nullptr);
  rule->Leased(0);
  EXPECT_FALSE(rule->MayLease({.step = 1}));
}

}  // namespace
}  // namespace shoal
