// Moving averages in a VariableStore: their formula, and that they follow the rules of the
// protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/store/store_loading.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Variable Average(std::string name, int64_t size, double momentum) {
  return {.name = std::move(name),
          .shape = {size},
          .rule = UpdateRule::kMovingAverage,
          .momentum = momentum,
          .initializer = {.kind = Initializer::Kind::kConstant, .a = 1}};
}

// A kernel in chunk 0 and two averages in chunk 1. The optimizer has everything that must not touch
// these: slots, weight decay.
std::unique_ptr<VariableStore> StoreWithAverages() {
  const std::vector<Variable> variables = {
      {.name = "kernel", .shape = {6}}, Average("mean", 3, 0.99), Average("variance", 2, 0.5)};
  auto store = std::make_unique<VariableStore>(VariableStore::Options{
      .variables = variables,
      .shard_map = ShardMap(variables, 1, {}),
      .optimizer = *MakeOptimizer(
          R"({"class_name": "SGD", "config": {"momentum": 0.9, "weight_decay": 0.1}})"),
      .window_steps = 64});
  FillFromSeed(store.get());
  return store;
}

// Keras: moving * momentum + batch * (1 - momentum), in float32, 1 - momentum in float64.
float Next(float value, float sample, double momentum) {
  return value * static_cast<float>(momentum) + sample * static_cast<float>(1 - momentum);
}

TEST(MovingAverageTest, EachPieceHasItsOwnMomentum) {
  const std::vector<float> samples = {4, -2, 0.3f, 7, 1e-3f};
  for (size_t slice_bytes = 0; slice_bytes <= 20; ++slice_bytes) {
    const auto store = StoreWithAverages();
    ASSERT_TRUE(store->Push(GradientMessage(samples, slice_bytes), 0, 1, 0).ok());
    EXPECT_THAT(ToFloats(store->Read(1)->payload),
                ElementsAre(Next(1, 4, 0.99), Next(1, -2, 0.99), Next(1, 0.3f, 0.99),
                            Next(1, 7, 0.5), Next(1, 1e-3f, 0.5)))
        << slice_bytes;
  }
}

TEST(MovingAverageTest, HasNoSlots) {
  const auto store = StoreWithAverages();
  EXPECT_EQ(store->chunk(0).slot(0).size(), 6u);
  for (const CutCopies::Piece& piece : store->cut().CopyPieces(1)) {
    EXPECT_THAT((std::vector<std::string>{"mean", "variance"}), testing::Contains(piece.tensor));
  }
  EXPECT_THAT(store->cut().Part(1, 1), IsEmpty());
  std::vector<std::string> tensors;
  for (const VariableStore::RowRun& run : store->RowRuns()) tensors.push_back(run.tensor);
  EXPECT_THAT(tensors, ElementsAre("kernel", "sgd_momentum/kernel", "mean", "variance"));
}

TEST(MovingAverageTest, ARepeatedSampleIsDropped) {
  const auto store = StoreWithAverages();
  ASSERT_TRUE(store->Push(GradientMessage({1, 2, 3, 4, 5}), 0, 1, 0).ok());
  const std::vector<float> once = ToFloats(store->Read(1)->payload);
  const auto again = store->Push(GradientMessage({1, 2, 3, 4, 5}), 0, 1, 0);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(ToFloats(store->Read(1)->payload), once);
  EXPECT_EQ(store->chunk(1).version(), 1u);
}

// Of samples of steps below the cut the copy gets each, of those behind none; in the order in which
// they come.
TEST(MovingAverageTest, TheCutHasTheSamplesOfTheStepsBelow) {
  const auto store = StoreWithAverages();
  const auto push = [&](uint64_t step) {
    const auto sample = static_cast<float>(step);
    ASSERT_TRUE(store->Push(GradientMessage(std::vector<float>(5, sample)), step, 1, 0).ok());
    ASSERT_TRUE(store->Push(GradientMessage(std::vector<float>(6, 0)), step, 0, 0).ok());
  };
  push(0);
  ASSERT_EQ(store->cut().Start(3), std::nullopt);
  for (const uint64_t step : {4, 2, 3, 1}) push(step);
  ASSERT_TRUE(store->cut().Ready());
  float mean = 1, variance = 1;
  for (const float sample : {0, 2, 1}) {
    mean = Next(mean, sample, 0.99);
    variance = Next(variance, sample, 0.5);
  }
  EXPECT_THAT(ToFloats(store->cut().Read(1, 3)->payload),
              ElementsAre(mean, mean, mean, variance, variance));
}

// The steps that all chunks have are known of them too.
TEST(MovingAverageTest, AStepIsNotAppliedBeforeItsSampleIs) {
  const auto store = StoreWithAverages();
  ASSERT_TRUE(store->Push(GradientMessage(std::vector<float>(6, 1)), 0, 0, 0).ok());
  EXPECT_EQ(store->base(), 0u);
  ASSERT_TRUE(store->Push(GradientMessage(std::vector<float>(5, 1)), 0, 1, 0).ok());
  EXPECT_EQ(store->base(), 1u);
}

}  // namespace
}  // namespace shoal
