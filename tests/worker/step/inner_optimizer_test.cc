#include "worker/step/inner_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "common/model/moving_average.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// A kernel, the mean of a normalization and a frozen variable.
class InnerOptimizerTest : public testing::Test {
 protected:
  enum { kKernel, kMean, kFrozen };
  static constexpr int kBatches = 7;  // of a whole step

  void Make(const std::string& config, const std::string& outer = R"("sgd")",
            bool by_chunks = false) {
    inner_.emplace(
        InnerOptimizer::Options{.optimizer = MakeOptimizer(config).value(),
                                .difference_clipping = MakeOptimizer(outer).value()->clipping(),
                                .batches_per_step = kBatches,
                                .variables = variables_,
                                .by_chunks = by_chunks});
  }
  std::span<float> Part(std::span<float> buffer, int variable) const {
    return buffer.subspan(layout_.variables[variable].offset, layout_.variables[variable].size);
  }
  std::vector<float> Random() {
    std::vector<float> values(layout_.size);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random_);
    return values;
  }
  // Of a step of these batches, from `parameters`.
  std::vector<float> Step(const std::vector<float>& parameters,
                          const std::vector<std::vector<float>>& batches, uint64_t first = 0) {
    inner_->Begin(parameters);
    std::vector<float> pushed;
    for (const std::vector<float>& batch : batches) {
      pushed = batch;
      inner_->Update(first++, pushed);
    }
    inner_->Finish(parameters, pushed);
    return pushed;
  }
  float StepOf(float gradient, uint64_t batch) {
    const std::vector<float> zeros(layout_.size);
    return Step(zeros, {std::vector<float>(layout_.size, gradient)}, batch)[0];
  }

  const uint64_t seed_ = TestSeed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, SeedText(seed_)};
  std::mt19937_64 random_{seed_};
  const std::vector<Variable> variables_ = {
      {.name = "dense/kernel", .shape = {5}},
      {.name = "norm/mean", .shape = {3}, .rule = UpdateRule::kMovingAverage, .momentum = 0.9},
      {.name = "old/kernel", .shape = {2}, .rule = UpdateRule::kFrozen}};
  const ModelLayout layout_{variables_};
  std::optional<InnerOptimizer> inner_;
};

TEST_F(InnerOptimizerTest, APushIsTheDecreaseOfTheValues) {
  Make(R"({"class_name": "SGD", "config": {"learning_rate": 0.5}})");
  const std::vector<float> parameters = Random(), first = Random(), second = Random();
  std::vector<float> pushed = Step(parameters, {first, second});
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(pushed[i], 0.5f * first[i] + 0.5f * second[i], 1e-6);
    EXPECT_NEAR(inner_->values()[i], parameters[i] - pushed[i], 1e-6);
  }
  const std::span<float> frozen = Part(inner_->values(), kFrozen);
  EXPECT_EQ(frozen[1], parameters[layout_.variables[kFrozen].offset + 1]);
}

TEST_F(InnerOptimizerTest, OneSampleDoesWhatThoseOfTheBatchesDoOneByOne) {
  Make(R"("sgd")");
  std::vector<float> parameters = Random();
  // The last step of an epoch may have fewer, and a ps takes it as any other.
  for (const int batches : {1, 2, kBatches}) {
    std::vector<std::vector<float>> samples;
    for (int i = 0; i < batches; ++i) samples.push_back(Random());
    std::vector<float> one_by_one = parameters;
    const std::span<float> want = Part(one_by_one, kMean);
    for (std::vector<float>& sample : samples)
      UpdateMovingAverage(0.9, Part(sample, kMean), want, want);
    std::vector<float> pushed = Step(parameters, samples);
    const std::span<float> got = Part(parameters, kMean);
    UpdateMovingAverage(std::pow(0.9, kBatches), Part(pushed, kMean), got, got);
    EXPECT_THAT(got, Pointwise(FloatNear(1e-5f), want)) << batches << " batches";
  }
}

// Of two chunks, the second of which is exchanged a batch later, while the answer to the first is
// on its way. Others have moved both meanwhile.
TEST_F(InnerOptimizerTest, UpdatesDuringAnExchangeAreInTheNextOne) {
  Make(R"({"class_name": "SGD", "config": {"learning_rate": 0.5}})", R"("sgd")",
       /*by_chunks=*/true);
  const Chunk first = {.size = 2, .pieces = {{kKernel, 0, 0, 2}}};
  const Chunk second = {.size = 3, .pieces = {{kKernel, 2, 0, 3}}};
  std::vector<float> parameters = Random(), pushed(layout_.size);
  const std::vector<float> before = parameters;
  std::vector<std::vector<float>> batches(4);
  for (std::vector<float>& batch : batches) batch = Random();
  const auto update = [&](int batch) {
    std::vector<float> gradients = batches[batch];
    inner_->Update(batch, gradients);
  };
  EXPECT_FALSE(inner_->begun());
  inner_->Begin(parameters);
  EXPECT_TRUE(inner_->begun());
  update(0);
  inner_->Exchange(first, parameters, pushed);
  update(1);
  inner_->Exchange(second, parameters, pushed);
  for (int i = 0; i < 5; ++i) {
    float moved = 0.5f * batches[0][i];
    if (i >= 2) moved += 0.5f * batches[1][i];
    EXPECT_NEAR(pushed[i], moved, 1e-6) << i;
  }
  for (int i = 0; i < 5; ++i) parameters[i] -= pushed[i] + 0.25f;
  inner_->Merge(first, parameters);
  update(2);
  inner_->Merge(second, parameters);
  inner_->Exchange(first, parameters, pushed);
  inner_->Exchange(second, parameters, pushed);
  for (int i = 0; i < 5; ++i) {
    const float all = 0.5f * (batches[0][i] + batches[1][i] + batches[2][i]);
    EXPECT_NEAR(inner_->values()[i], before[i] - all - 0.25f, 1e-5) << i;
    const float rest = 0.5f * ((i < 2 ? batches[1][i] : 0) + batches[2][i]);
    EXPECT_NEAR(pushed[i], rest, 1e-5) << i << ": each batch in one exchange";
  }
  inner_->Forget();
  EXPECT_FALSE(inner_->begun());
}

// However many batches there were since the last one.
TEST_F(InnerOptimizerTest, ASampleIsOfTheBatchesSinceTheLastExchange) {
  Make(R"("sgd")", R"("sgd")", /*by_chunks=*/true);
  const Chunk mean = {.size = 3, .rule = UpdateRule::kMovingAverage, .pieces = {{kMean, 0, 0, 3}}};
  std::vector<float> parameters = Random(), pushed(layout_.size), one_by_one = parameters;
  const std::span<float> want = Part(one_by_one, kMean), got = Part(parameters, kMean);
  inner_->Begin(parameters);
  for (const int batches : {3, kBatches + 2}) {
    for (int i = 0; i < batches; ++i) {
      std::vector<float> samples = Random();
      UpdateMovingAverage(0.9, Part(samples, kMean), want, want);
      inner_->Update(i, samples);
    }
    inner_->Exchange(mean, parameters, pushed);
    UpdateMovingAverage(std::pow(0.9, kBatches), Part(pushed, kMean), got, got);
    inner_->Merge(mean, parameters);
    EXPECT_THAT(got, Pointwise(FloatNear(1e-5f), want)) << batches << " batches";
    EXPECT_THAT(Part(inner_->values(), kMean), Pointwise(FloatNear(0.0f), got));
  }
}

TEST_F(InnerOptimizerTest, SlotsGoOnUntilTheyAreForgotten) {
  Make(R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": 0.5}})");
  EXPECT_FLOAT_EQ(StepOf(1, 0), 1);
  EXPECT_FLOAT_EQ(StepOf(1, 1), 1.5) << "from other values, with the momentum of before";
  inner_->Forget();
  EXPECT_FLOAT_EQ(StepOf(1, 2), 1);
}

// With the job's number and fresh slots the first updates would be three times too large.
TEST_F(InnerOptimizerTest, TheRateGoesByTheBatchAndTheBiasByTheSlots) {
  Make(R"({"class_name": "Adam", "config": {"learning_rate":
      {"class_name": "ExponentialDecay", "config": {"initial_learning_rate": 1, "decay_steps": 1,
       "decay_rate": 0.5}}}})");
  EXPECT_NEAR(StepOf(3, 2), 0.25, 1e-5);
}

TEST_F(InnerOptimizerTest, GradientsAndDifferencesAreClipped) {
  Make(R"({"class_name": "SGD", "config": {"learning_rate": 1, "clipvalue": 0.5}})",
       R"({"class_name": "SGD", "config": {"clipvalue": 0.75}})");
  const std::vector<float> zeros(layout_.size), twos(layout_.size, 2);
  std::vector<float> once = Step(zeros, {twos});
  EXPECT_THAT(Part(once, kKernel), Each(0.5f));
  EXPECT_THAT(Part(once, kMean),
              Each(testing::FloatNear(0.2f / (1 - std::pow(0.9f, kBatches)), 1e-5f)))
      << "a sample is no gradient: it is of one batch of seven, and not clipped";
  std::vector<float> twice = Step(zeros, {twos, twos});
  EXPECT_THAT(Part(twice, kKernel), Each(0.75f));
}

TEST_F(InnerOptimizerTest, ExcludedVariablesDoNotDecay) {
  const std::vector<float> ones(layout_.size, 1), zeros(layout_.size);
  Make(R"({"class_name": "SGD", "config": {"learning_rate": 1, "weight_decay": 0.25}})");
  EXPECT_FLOAT_EQ(Step(ones, {zeros})[0], 0.25);
  Make(R"({"class_name": "SGD", "config": {"learning_rate": 1, "weight_decay": 0.25,
      "exclude_from_weight_decay": ["kernel"]}})");
  EXPECT_FLOAT_EQ(Step(ones, {zeros})[0], 0);
}

}  // namespace
}  // namespace shoal
