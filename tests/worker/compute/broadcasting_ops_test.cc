// What the ops that repeat values promise beside what op_conformance_test.cc sees.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/model/ops/binary.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/double_interpreter.h"

namespace shoal {
namespace {

TEST(BinaryOpTest, EqualOnesShareTheGradientOfTheMaximum) {
  Graph graph;
  const ValueId one = graph.AddVariable({.name = "one", .shape = {2, 3}});
  const ValueId other = graph.AddVariable({.name = "other", .shape = {3}});
  auto op = std::make_shared<BinaryOp>();
  op->kind = BinaryOp::Kind::kMaximum;
  graph.SetOutputs({*graph.Add(op, {one, other}, "maximum")});
  const auto training = BuildTrainingGraph(graph, *LossOf("MeanSquaredError"));
  ASSERT_TRUE(training.ok()) << training.status();
  DoubleInterpreter interpreter(*training);
  interpreter.variable(0) = {1, 2, 3, 1, 2, 3};
  interpreter.variable(1) = {1, 1, 4};
  interpreter.input(0) = {0, 0, 0, 0, 0, 0};
  interpreter.Train();
  // Of the mean of 6 squares: 2 y / 6 each.
  const std::vector<double>& of_one = interpreter.value(training->pushed_values[0]);
  const std::vector<double>& of_other = interpreter.value(training->pushed_values[1]);
  EXPECT_DOUBLE_EQ(of_one[0], 1.0 / 6);
  EXPECT_DOUBLE_EQ(of_other[0], 2.0 / 6);  // of two rows
  EXPECT_DOUBLE_EQ(of_one[1], 2 * 2 / 6.0);
  EXPECT_EQ(of_other[1], 0);
  EXPECT_EQ(of_one[2], 0);
}

TEST(BinaryOpTest, ShapesThatDoNotGoTogetherAreNamed) {
  const auto shape = BinaryOp().InferShapes({{kBatch, 2, 3}, {2, 2}});
  EXPECT_THAT(shape.status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"(None, 2, 3)", "(2, 2)"}));
}

}  // namespace
}  // namespace shoal
