#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_format.h"
#include "common/optimizer/optimizer.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kOuterSize = 67;  // no multiple of any vector length

// Values, and what an optimizer keeps beside them.
struct Trained {
  explicit Trained(const std::string& config)
      : optimizer(MakeOuterOptimizer(config, "$.outer").value()), values(kOuterSize) {
    for (size_t i = 0; i < kOuterSize; ++i) values[i] = 0.1f * static_cast<float>(i % 13) - 0.5f;
    slots.assign(optimizer->slot_names().size(), std::vector<float>(kOuterSize));
  }
  void Apply(const std::vector<float>& gradient, uint64_t iteration) {
    std::vector<float*> places;
    for (std::vector<float>& slot : slots) places.push_back(slot.data());
    optimizer->Prepare(iteration)->Apply(gradient, values, values, places);
  }
  double FarthestFrom(const Trained& other) const {
    double farthest = 0;
    for (size_t i = 0; i < kOuterSize; ++i)
      farthest = std::max(farthest, std::abs(double{values[i]} - other.values[i]));
    return farthest;
  }

  std::unique_ptr<const Optimizer> optimizer;
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
};

std::string Delayed(int every) {
  return absl::StrFormat(
      R"({"class_name": "DelayedNesterov", "config": {"learning_rate": 0.7, "momentum": 0.9,
          "momentum_every": %d}})",
      every);
}

constexpr char kNesterov[] = R"({"class_name": "SGD", "config": {"learning_rate": 0.7,
    "momentum": 0.9, "nesterov": true}})";

class DelayedNesterovTest : public testing::Test {
 protected:
  std::vector<float> Gradient() {
    std::vector<float> gradient(kOuterSize);
    // So small that the values stay below 1, where they are rounded to 6e-8.
    std::uniform_real_distribution<float> uniform(-0.04f, 0.04f);
    for (float& g : gradient) g = uniform(random_);
    return gradient;
  }

 private:
  const uint64_t seed_ = TestSeed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, SeedText(seed_)};
  std::mt19937_64 random_{seed_};
};

// What it is for: k workers that start from the same values and find the same, one after the other,
// move the values as far as they do together, in a synchronous step.
TEST_F(DelayedNesterovTest, EqualDifferencesInARowAreTheSynchronousStep) {
  for (const int k : {1, 2, 4, 8}) {
    Trained delayed(Delayed(k)), plain(kNesterov), together(kNesterov);
    for (uint64_t round = 0; round < 4; ++round) {
      const std::vector<float> gradient = Gradient();
      for (int i = 0; i < k; ++i) {
        delayed.Apply(gradient, round * k + i + 1);
        plain.Apply(gradient, round * k + i + 1);
      }
      together.Apply(gradient, round + 1);
      EXPECT_LT(delayed.FarthestFrom(together), 1e-6) << k << " differences, round " << round;
    }
    if (k > 1) {
      EXPECT_GT(plain.FarthestFrom(together), 0.02) << "plain Nesterov takes each for a round";
    }
  }
}

TEST_F(DelayedNesterovTest, WeightsDecayOnceInSoManyDifferences) {
  Trained delayed(R"({"class_name": "DelayedNesterov", "config": {"learning_rate": 0.5,
      "momentum_every": 8, "weight_decay": 0.1}})");
  const float before = delayed.values[1];
  for (int t = 1; t <= 8; ++t) delayed.Apply(std::vector<float>(kOuterSize), t);
  EXPECT_NEAR(delayed.values[1] / before, 1 - 0.5 * 0.1, 2e-3);
}

TEST_F(DelayedNesterovTest, DifferentOnesInARowAreTheirMean) {
  constexpr int kEvery = 3;
  Trained delayed(Delayed(kEvery)), together(kNesterov);
  for (uint64_t round = 0; round < 4; ++round) {
    std::vector<float> mean(kOuterSize);
    for (int i = 0; i < kEvery; ++i) {
      const std::vector<float> gradient = Gradient();
      for (size_t j = 0; j < kOuterSize; ++j) mean[j] += gradient[j] / kEvery;
      delayed.Apply(gradient, round * kEvery + i + 1);
    }
    together.Apply(mean, round + 1);
    EXPECT_LT(delayed.FarthestFrom(together), 1e-5);
  }
}

TEST_F(DelayedNesterovTest, TheBufferHasWhatCameSinceTheMomentum) {
  Trained delayed(Delayed(2));
  ASSERT_THAT(delayed.optimizer->slot_names(),
              ElementsAre("delayed_nesterov_momentum", "delayed_nesterov_buffer"));
  const std::vector<float> first = Gradient(), second = Gradient();
  delayed.Apply(first, 1);
  EXPECT_EQ(delayed.slots[0], std::vector<float>(kOuterSize));
  EXPECT_EQ(delayed.slots[1], first);
  delayed.Apply(second, 2);
  EXPECT_FLOAT_EQ(delayed.slots[0][5], (first[5] + second[5]) / 2);
  EXPECT_EQ(delayed.slots[1], std::vector<float>(kOuterSize));
}

TEST(OuterOptimizerTest, IsAnyOfKerasAndDelayedNesterov) {
  EXPECT_EQ(MakeOuterOptimizer(R"("adam")", "$.outer").value()->slot_names().size(), 2u);
  EXPECT_THAT(MakeOuterOptimizer(R"({"class_name": "DelayedNesterov", "config": {}})", "$.outer")
                  .status()
                  .message(),
              HasSubstr("$.outer.config.momentum_every: "));
  EXPECT_THAT(MakeOptimizer(Delayed(2)).status().message(),
              HasSubstr("$.strategy.outer_optimizer "));
}

TEST(OuterOptimizerTest, TheRateMayFollowAnotherNumberThanTheSlotsUpdates) {
  const auto optimizer = *MakeOptimizer(R"({"class_name": "Adam", "config": {"learning_rate":
      {"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 1, "decay_steps": 1,
       "decay_rate": 0.5}}}})");
  const auto first_change = [&](const Optimizer::Conditions& conditions) {
    float value = 0, m = 0, v = 0;
    const float gradient = 3;
    optimizer->Prepare(1, conditions)
        ->Apply({&gradient, 1}, {&value, 1}, {&value, 1}, std::vector<float*>{&m, &v});
    return value;
  };
  EXPECT_NEAR(first_change({}), -1, 1e-5);
  EXPECT_NEAR(first_change({.scheduled_as = 3}), -0.25, 1e-5) << "the bias is that of update 1";
}

}  // namespace
}  // namespace shoal
