#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/model/training/training_graph.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {

using Build = std::function<void(ModelBuilding& model)>;

// Like the cpu backend: poolings take the gradients of ReLUs, and no normalization takes a sum.
inline bool PoolingsTakeGradients(const Node& node) {
  const auto* backward = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(node.op.get());
  return dynamic_cast<const BatchNormalizationAddOp*>(node.op.get()) == nullptr &&
         (backward == nullptr || !(backward->has_total() || backward->has_dbias));
}

// Like the cuda backend: normalizations take what they can.
inline bool NormalizationsTakeSums(const Node& node) {
  return dynamic_cast<const MaxPool2DBackwardReluOp*>(node.op.get()) == nullptr &&
         dynamic_cast<const Conv2DBackwardVariablesOp*>(node.op.get()) == nullptr;
}

class PassesTest : public ::testing::Test {
 protected:
  // The nodes after all passes, of a model with images of 4 x 4 with 2 channels as input.
  void Run(const Build& build, const Supports& supports, PlanMode mode = PlanMode::kTrain) {
    ModelBuilding model({kBatch, 4, 4, 2});
    build(model);
    Run(model.Flatten().Dense(3).Build(), supports, mode);
  }
  void Run(const Graph& model, const Supports& supports, PlanMode mode = PlanMode::kTrain) {
    RunTraining(BuildTrainingGraph(model, *kSparse).value(), supports, mode);
  }
  void RunTraining(TrainingGraph training, const Supports& supports,
                   PlanMode mode = PlanMode::kTrain) {
    training_ = std::make_unique<const TrainingGraph>(std::move(training));
    plan_ = std::make_unique<Plan>(*training_, mode, /*examples=*/2);
    before_ = plan_->nodes();
    RunPasses(supports, *plan_);
    ExpectEachReadIsComputedBefore();
  }

  int Count(const std::string& type) const { return CountIn(plan_->nodes(), type); }
  // How many nodes of this type the passes have removed or replaced.
  int Gone(const std::string& type) const { return CountIn(before_, type) - Count(type); }
  int NodesGone() const { return static_cast<int>(before_.size() - plan_->nodes().size()); }
  // The fused gradients of normalizations, in order.
  std::vector<BatchNormalizationBackwardFusedOp> FusedGradients() const {
    std::vector<BatchNormalizationBackwardFusedOp> found;
    for (const Node& node : plan_->nodes()) {
      const auto* op = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(node.op.get());
      if (op != nullptr) found.push_back(*op);
    }
    return found;
  }

  std::unique_ptr<const TrainingGraph> training_;
  std::unique_ptr<Plan> plan_;
  std::vector<Node> before_;

 private:
  static int CountIn(const std::vector<Node>& nodes, const std::string& type) {
    return static_cast<int>(std::count_if(
        nodes.begin(), nodes.end(), [&](const Node& node) { return node.op->type() == type; }));
  }
  // Each input is an input or a variable of the graph, or an output of an earlier node. Each value
  // for the caller is computed.
  void ExpectEachReadIsComputedBefore() const {
    for (int i = 0; i < static_cast<int>(plan_->nodes().size()); ++i) {
      for (const ValueId input : plan_->nodes()[i].inputs) {
        EXPECT_LT(plan_->producer(input), i) << plan_->nodes()[i].op->type();
        const bool is_node = plan_->graph().value(input).kind == Value::Kind::kNode;
        EXPECT_EQ(plan_->producer(input) >= 0, is_node) << plan_->nodes()[i].op->type();
      }
    }
    for (ValueId value = 0; value < static_cast<int>(plan_->graph().values().size()); ++value) {
      const bool is_node = plan_->graph().value(value).kind == Value::Kind::kNode;
      if (!is_node || !plan_->has_loss() || !plan_->wanted_outside(value)) continue;
      EXPECT_GE(plan_->producer(value), 0) << value;
    }
  }
};

}  // namespace shoal
