#include "worker/compute/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/model/ops/dense.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"

namespace shoal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSubsetOf;

// The types of the ops, of the layers' order.
std::vector<std::string> Types(const Plan& plan) {
  std::vector<std::string> types;
  for (const Node& node : plan.nodes()) types.push_back(node.op->type());
  return types;
}

TEST(PlanTest, OfEachModeIsWhatTheCallerReadsOfIt) {
  ModelBuilding model({kBatch, 4});
  model.Dense(5).Relu().Dense(3);
  const TrainingGraph training = BuildTrainingGraph(model.Build(), *kSparse).value();
  EXPECT_THAT(Types(Plan(training, PlanMode::kPredict, 2)),
              ElementsAre("Dense", "Activation", "Dense"));
  const Plan evaluation(training, PlanMode::kEvaluate, 2), step(training, PlanMode::kTrain, 2);
  EXPECT_EQ(evaluation.nodes().size(), static_cast<size_t>(training.loss_nodes_end));
  EXPECT_THAT(Types(evaluation), IsSubsetOf(Types(step)));
  EXPECT_THAT(Types(step), Contains("DenseBackwardWeights").Times(2));
  // The gradient of the batch, which nobody wants, is not computed.
  EXPECT_THAT(Types(step), Contains("DenseBackwardData").Times(1));
  EXPECT_FALSE(Plan(training, PlanMode::kPredict, 2).has_loss());
  EXPECT_TRUE(evaluation.has_loss() && !evaluation.computes_gradients() &&
              !evaluation.in_training_mode());
  EXPECT_TRUE(step.has_loss() && step.computes_gradients() && step.in_training_mode());
}

// y = dense(x); the other layer's output is read by nothing.
TEST(PlanTest, LeavesOutWhatNothingReads) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch, 2});
  const ValueId kernel = graph.AddVariable({.name = "kernel", .shape = {2, 2}});
  const ValueId unread = *graph.Add(std::make_shared<DenseOp>(), {x, kernel}, "unread");
  const ValueId y = *graph.Add(std::make_shared<DenseOp>(), {x, kernel}, "read");
  graph.SetOutputs({y});
  const TrainingGraph training = BuildTrainingGraph(graph, *kSparse).value();
  const Plan plan(training, PlanMode::kPredict, 1);
  EXPECT_THAT(Types(plan), ElementsAre("Dense"));
  EXPECT_EQ(plan.nodes()[0].layer, "read");
  EXPECT_THAT(plan.consumers(x), ElementsAre(0));
  EXPECT_THAT(plan.consumers(unread), ElementsAre());
  EXPECT_TRUE(plan.wanted_outside(y));
  EXPECT_FALSE(plan.wanted_outside(unread));
  EXPECT_EQ(plan.producer(y), 0);
  EXPECT_EQ(plan.producer(x), -1);
  EXPECT_EQ(plan.producer(unread), -1);
}

TEST(PlanTest, GradientsAreReadByTheCallerWhereItTrains) {
  const TrainingGraph training =
      BuildTrainingGraph(ModelBuilding({kBatch, 2}).Dense(3).Build(), *kSparse).value();
  const Plan step(training, PlanMode::kTrain, 1), evaluation(training, PlanMode::kEvaluate, 1);
  for (const ValueId gradient : training.pushed_values) {
    EXPECT_TRUE(step.wanted_outside(gradient));
    EXPECT_FALSE(evaluation.wanted_outside(gradient));
  }
}

TEST(PlanTest, ShapesHaveTheExamplesOfTheBatch) {
  const TrainingGraph training =
      BuildTrainingGraph(ModelBuilding({kBatch, 2}).Dense(3).Build(), *kSparse).value();
  EXPECT_EQ(Plan(training, PlanMode::kPredict, 7).shape(training.prediction), (Shape{7, 3}));
}

}  // namespace
}  // namespace shoal
