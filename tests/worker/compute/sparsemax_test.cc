// Keras's sparsemax where its derivative jumps, which op_conformance_test.cc keeps away from. The
// numbers are JAX's, of jax.vjp(keras.activations.sparsemax, x).

#include "common/model/ops/sparsemax.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/double_interpreter.h"

namespace shoal {
namespace {

// The gradient of the row `x` for that of the op, (1, 2, 3, 4), which a target makes of `y`.
std::vector<double> GradientOf(const std::vector<double>& x, const std::vector<double>& y) {
  Graph graph;
  const ValueId row = graph.AddVariable({.name = "x", .shape = {1, 4}});
  graph.SetOutputs({*graph.Add(std::make_shared<SparsemaxOp>(), {row}, "sparsemax")});
  const auto training = BuildTrainingGraph(graph, *LossOf("MeanSquaredError"));
  EXPECT_TRUE(training.ok()) << training.status();
  DoubleInterpreter interpreter(*training);
  interpreter.variable(0) = x;
  for (int i = 0; i < 4; ++i) interpreter.input(0).push_back(y[i] - 2 * (i + 1));
  interpreter.Train();
  EXPECT_EQ(interpreter.value(training->prediction), y);
  return interpreter.value(training->pushed_values[0]);
}

TEST(SparsemaxOpTest, AnElementThatIsTheThresholdGetsHalf) {
  EXPECT_EQ(GradientOf({1, 0, 0, -3}, {1, 0, 0, 0}), (std::vector<double>{-2.5, 1, 1.5, 0}));
}

TEST(SparsemaxOpTest, OfEqualElementsTheFirstIsTheLargerOne) {
  EXPECT_EQ(GradientOf({-5, -1, -9, -1}, {0, 1, 0, 1}), (std::vector<double>{0, -4, 0, 1}));
}

TEST(SparsemaxOpTest, SumsAllCumulativeSums) {
  EXPECT_EQ(GradientOf({2, 2, 1, 0}, {0, 0, 0, 0}), (std::vector<double>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace shoal
