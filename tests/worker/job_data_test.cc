#include "worker/job_data.h"

#include <gtest/gtest.h>

#include "common/model/ops/gather.h"

namespace shoal {
namespace {

TEST(JobDataTest, AnInputThatNumbersTheRowsOfATableTakesThoseIntegers) {
  Graph model;
  const ValueId table = model.AddVariable({.name = "embedding", .shape = {1000, 8}});
  const ValueId price = model.AddInput("price", {kBatch, 3});
  const ValueId user = model.AddInput("user", {kBatch});
  ASSERT_TRUE(model.Add(std::make_shared<GatherOp>(), {table, user}, "embedding").ok());
  const std::vector<Feature> inputs = InputsOf(model);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "price");
  EXPECT_EQ(inputs[0].shape, Shape{3});
  EXPECT_EQ(inputs[0].type, FeatureType::kFloat);
  EXPECT_EQ(inputs[1].name, "user");
  EXPECT_EQ(inputs[1].shape, Shape{});
  EXPECT_EQ(inputs[1].type, FeatureType::kInteger);
  EXPECT_EQ(inputs[1].least, 0);
  EXPECT_EQ(inputs[1].most, 999);
  EXPECT_EQ(model.inputs().size(), 2u);
  EXPECT_EQ(price, model.inputs()[0]);
}

TEST(JobDataTest, AnInputTakesTheWholeNumbersOfItsDtype) {
  Graph model;
  const ValueId table = model.AddVariable({.name = "embedding", .shape = {1000, 8}});
  model.AddInput("picture", {kBatch, 4, 4, 1}, WholeNumbers{0, 255});
  const ValueId user = model.AddInput("user", {kBatch}, WholeNumbers{-128, 127});
  ASSERT_TRUE(model.Add(std::make_shared<GatherOp>(), {table, user}, "embedding").ok());
  const std::vector<Feature> inputs = InputsOf(model);
  EXPECT_EQ(inputs[0].type, FeatureType::kInteger);
  EXPECT_EQ(inputs[0].least, 0);
  EXPECT_EQ(inputs[0].most, 255);
  // Of both ranges what they share.
  EXPECT_EQ(inputs[1].least, 0);
  EXPECT_EQ(inputs[1].most, 127);
}

}  // namespace
}  // namespace shoal
