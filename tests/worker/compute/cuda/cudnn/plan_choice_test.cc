// The choice among plans, with plans and times that are made up.

#include "worker/compute/cuda/cudnn/plan_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FakePlan {
  EngineConfig engine;
  const EngineConfig& config() const { return engine; }
};

const PlanKey kKey = {"9.19.0", "NVIDIA H100 9.0 132", "forward", "tf32=0"};

class PlanChoiceTest : public ::testing::Test {
 protected:
  // Engines 0, 1, ... with these times; a negative one cannot be measured.
  PlanOffer<FakePlan> Offer(const std::vector<double>& seconds) {
    PlanOffer<FakePlan> offer;
    offer.make = [this,
                  count = seconds.size()](const EngineConfig& config) -> absl::StatusOr<FakePlan> {
      ++made_;
      if (config.engine >= static_cast<int64_t>(count)) return absl::NotFoundError("no such");
      return FakePlan{config};
    };
    offer.suggest = [this,
                     count = seconds.size()](size_t most) -> absl::StatusOr<std::vector<FakePlan>> {
      if (count == 0) return absl::UnimplementedError("no engine");
      std::vector<FakePlan> plans;
      for (size_t i = 0; i < std::min(most, count); ++i) {
        plans.push_back({{.engine = static_cast<int64_t>(i)}});
      }
      suggested_ = plans.size();
      return plans;
    };
    offer.measure = [this, seconds](FakePlan& plan) -> absl::StatusOr<double> {
      measured_.push_back(plan.engine.engine);
      if (seconds[plan.engine.engine] < 0) return absl::ResourceExhaustedError("no memory");
      return seconds[plan.engine.engine];
    };
    return offer;
  }
  absl::StatusOr<int64_t> Choose(const PlanOffer<FakePlan>& offer) {
    const auto plan = ChoosePlan<FakePlan>(
        offer, kKey, cache_, [this](const std::string& text) { warnings_.push_back(text); });
    if (!plan.ok()) return plan.status();
    return plan->engine.engine;
  }

  PlanCache cache_{""};
  int made_ = 0;
  size_t suggested_ = 0;
  std::vector<int64_t> measured_;
  std::vector<std::string> warnings_;
};

TEST_F(PlanChoiceTest, MeasuresOnceAndTakesTheFastest) {
  EXPECT_EQ(*Choose(Offer({3, 2, 1, 2})), 2);
  EXPECT_THAT(measured_, ElementsAre(0, 1, 2, 3));
  // The next one knows.
  EXPECT_EQ(*Choose(Offer({3, 2, 1, 2})), 2);
  EXPECT_EQ(measured_.size(), 4u);
  EXPECT_EQ(made_, 1);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PlanChoiceTest, MeasuresAFewAlone) {
  std::vector<double> seconds(20, 2);
  seconds[kMeasuredPlans - 1] = 1;
  seconds[kMeasuredPlans] = 0;
  EXPECT_EQ(*Choose(Offer(seconds)), static_cast<int64_t>(kMeasuredPlans) - 1);
  EXPECT_EQ(measured_.size(), kMeasuredPlans);
}

TEST_F(PlanChoiceTest, OfEqualOnesTheFirstIsTaken) { EXPECT_EQ(*Choose(Offer({2, 1, 1})), 1); }

TEST_F(PlanChoiceTest, PassesOverWhatCannotBeMeasured) {
  EXPECT_EQ(*Choose(Offer({-1, 5, 4, -1})), 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PlanChoiceTest, TakesTheFirstWhereNothingCanBeMeasuredAndKeepsNothing) {
  EXPECT_EQ(*Choose(Offer({-1, -1})), 0);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the first is taken: no memory")));
  EXPECT_EQ(cache_.Find(kKey), std::nullopt);
}

// Nothing that the clock has said before is taken either.
TEST_F(PlanChoiceTest, WithoutMeasuringItIsTheFirstEachTime) {
  ASSERT_TRUE(cache_.Keep(kKey, {.engine = 1}).ok());
  PlanOffer<FakePlan> offer = Offer({3, 1});
  offer.measure = nullptr;
  EXPECT_EQ(*Choose(offer), 0);
  EXPECT_EQ(suggested_, 1u);
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(cache_.Find(kKey), EngineConfig{.engine = 1});
}

TEST_F(PlanChoiceTest, WhatIsKeptAndNoGoodIsMeasuredAnew) {
  ASSERT_TRUE(cache_.Keep(kKey, {.engine = 9999}).ok());
  EXPECT_EQ(*Choose(Offer({3, 1})), 1);
  EXPECT_EQ(cache_.Find(kKey), EngineConfig{.engine = 1});
}

TEST_F(PlanChoiceTest, SaysThatAChoiceCannotBeKept) {
  PlanCache nowhere("/proc/nowhere/plans");
  const auto plan = ChoosePlan<FakePlan>(
      Offer({3, 1}), kKey, nowhere, [this](const std::string& text) { warnings_.push_back(text); });
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->engine.engine, 1);
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("/proc/nowhere"), HasSubstr("XDG_CACHE_HOME"))));
}

TEST_F(PlanChoiceTest, WhereThereIsNoPlanTheErrorSaysWhy) {
  EXPECT_EQ(Choose(Offer({})).status(), absl::UnimplementedError("no engine"));
}

}  // namespace
}  // namespace shoal::cuda
