#include "worker/compute/plan/op_work.h"

#include <gtest/gtest.h>

#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"

namespace shoal {
namespace {

// By hand, for batches of 10.
TEST(WorkByOpTest, CountsProductsAndWhatIsReadAndWritten) {
  ModelBuilding model({kBatch, 6, 5, 4});
  model.Conv2D(8, {.size = {3, 2}}, /*groups=*/2);                    // [10, 4, 4, 8]
  model.DepthwiseConv2D({.size = {2, 2}}).Relu().Flatten().Dense(7);  // [10, 3, 3, 8], [10, 7]
  const auto training = BuildTrainingGraph(model.Build(), *kSparse);
  ASSERT_TRUE(training.ok()) << training.status();
  const auto work = WorkByOp(Plan(*training, PlanMode::kTrain, 10));
  const int64_t convolution = (10 * 4 * 4 * 8) * (3 * 2 * 2);
  const int64_t depthwise = (10 * 3 * 3 * 8) * (2 * 2);
  const int64_t dense = 10 * 7 * 72;
  EXPECT_EQ(work.at("Conv2D").multiply_adds, convolution);
  EXPECT_EQ(work.at("Conv2DBackwardWeights").multiply_adds, convolution);
  EXPECT_FALSE(work.contains("Conv2DBackwardData")) << "nobody asks for the gradient of the input";
  EXPECT_EQ(work.at("DepthwiseConv2D").multiply_adds, depthwise);
  EXPECT_EQ(work.at("DepthwiseConv2DBackwardData").multiply_adds, depthwise);
  EXPECT_EQ(work.at("DepthwiseConv2DBackwardWeights").multiply_adds, depthwise);
  EXPECT_EQ(work.at("Dense").multiply_adds, dense);
  EXPECT_EQ(work.at("DenseBackwardData").multiply_adds, dense);
  EXPECT_EQ(work.at("DenseBackwardWeights").multiply_adds, dense);
  EXPECT_EQ(work.at("Activation").multiply_adds, 0);
  EXPECT_EQ(work.at("Activation").values, 2 * 10 * 3 * 3 * 8);
  EXPECT_EQ(work.at("Dense").values, 10 * 72 + 72 * 7 + 7 + 10 * 7);
}

// In an evaluation there are no gradients.
TEST(WorkByOpTest, IsOfWhatAPlanComputes) {
  ModelBuilding model({kBatch, 6});
  model.Dense(7);
  const auto training = BuildTrainingGraph(model.Build(), *kSparse);
  ASSERT_TRUE(training.ok()) << training.status();
  const auto work = WorkByOp(Plan(*training, PlanMode::kEvaluate, 3));
  EXPECT_EQ(work.at("Dense").multiply_adds, 3 * 6 * 7);
  EXPECT_FALSE(work.contains("DenseBackwardWeights"));
}

}  // namespace
}  // namespace shoal
