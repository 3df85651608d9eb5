#include "worker/compute/plan/passes/element_types.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/plan/passes_fixture.h"
#include "worker/compute/plan/fused_ops.h"

namespace shoal {
namespace {

// The types of values after all passes.
class ElementTypesTest : public PassesTest {
 protected:
  static constexpr ComputeDtype kFloat32 = ComputeDtype::kFloat32;
  static constexpr ComputeDtype kBfloat16 = ComputeDtype::kBfloat16;

  // Convolution, normalization, ReLU and Dense under mixed_bfloat16, then a Dense layer in float32.
  static void Build(ModelBuilding& model) {
    model.ComputeIn(kBfloat16).Conv2D(3, {}).BatchNormalization().Relu().Flatten().Dense(4);
    model.ComputeIn(kFloat32);
  }
  // The nodes of this type after the passes.
  std::vector<Node> NodesOf(const std::string& type) const {
    std::vector<Node> found;
    for (const Node& node : plan_->nodes()) {
      if (node.op->type() == type) found.push_back(node);
    }
    return found;
  }
};

TEST_F(ElementTypesTest, AValueHasTheComputeDtypeOfItsNode) {
  Run(Build, NormalizationsTakeSums);
  ASSERT_EQ(NodesOf("Conv2D").size(), 1u);
  EXPECT_EQ(plan_->element_type(NodesOf("Conv2D")[0].outputs[0]), kBfloat16);
  ASSERT_EQ(NodesOf("Dense").size(), 2u);
  EXPECT_EQ(plan_->element_type(NodesOf("Dense")[0].outputs[0]), kBfloat16);
  EXPECT_EQ(plan_->element_type(NodesOf("Dense")[1].outputs[0]), kFloat32);
}

TEST_F(ElementTypesTest, StatisticsAndVariablesAreFloat32) {
  Run(Build, NormalizationsTakeSums);
  const std::vector<Node> nodes = NodesOf("BatchNormalizationRelu");
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(plan_->element_type(nodes[0].outputs[0]), kBfloat16);
  EXPECT_EQ(plan_->element_type(nodes[0].outputs[1]), kFloat32);
  EXPECT_EQ(plan_->element_type(nodes[0].outputs[2]), kFloat32);
  for (const ValueId variable : plan_->graph().variable_values())
    EXPECT_EQ(plan_->element_type(variable), kFloat32);
}

TEST_F(ElementTypesTest, TheCallerReadsFloat32) {
  ModelBuilding model({kBatch, 4, 4, 2});
  Run(model.ComputeIn(kBfloat16).Conv2D(3, {}).Flatten().Dense(3).Build(), NormalizationsTakeSums);
  EXPECT_EQ(plan_->element_type(training_->prediction), kFloat32);
  EXPECT_EQ(plan_->element_type(training_->loss_per_example), kFloat32);
  for (const ValueId pushed : training_->pushed_values) {
    EXPECT_EQ(plan_->element_type(pushed), kFloat32);
  }
  const std::vector<Node> data_gradients = NodesOf("DenseBackwardData");
  ASSERT_EQ(data_gradients.size(), 1u);
  EXPECT_EQ(plan_->element_type(data_gradients[0].outputs[0]), kBfloat16);
}

TEST_F(ElementTypesTest, ANodeThatTheBackendLacksIsFloat32) {
  Run(Build, [](const Node& node) {
    return node.compute_dtype == kFloat32 || std::string(node.op->type()).starts_with("Dense");
  });
  ASSERT_EQ(NodesOf("Conv2D").size(), 1u);
  EXPECT_EQ(NodesOf("Conv2D")[0].compute_dtype, kFloat32);
  EXPECT_EQ(plan_->element_type(NodesOf("Conv2D")[0].outputs[0]), kFloat32);
  EXPECT_EQ(plan_->element_type(NodesOf("Dense")[0].outputs[0]), kBfloat16);
}

// The gradient that a fused normalization passes on is as long as its input.
TEST_F(ElementTypesTest, AGradientThatIsPassedOnHasTheComputeDtype) {
  Run(
      [](ModelBuilding& model) {
        model.ComputeIn(kBfloat16).Conv2D(3, {}).Relu();
        const ValueId shortcut = model.current();
        model.Conv2D(3, {}).BatchNormalization().Add(shortcut).Relu();
      },
      NormalizationsTakeSums);
  int passed_on = 0;
  for (const Node& node : plan_->nodes()) {
    const auto* op = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(node.op.get());
    if (op == nullptr || !op->has_total()) continue;
    ++passed_on;
    EXPECT_EQ(plan_->element_type(node.outputs[0]), kBfloat16);
    EXPECT_EQ(plan_->element_type(node.outputs[1]), kFloat32);
    EXPECT_EQ(plan_->element_type(node.outputs[op->total()]), kBfloat16);
  }
  EXPECT_EQ(passed_on, 1);
}

}  // namespace
}  // namespace shoal
