#include "worker/compute/plan/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/model/ops/activation.h"
#include "common/model/training/training_graph.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {
namespace {

using Build = std::function<void(ModelBuilding& model)>;

// Like the cpu backend: poolings take the gradients of ReLUs, and no normalization takes a sum.
bool PoolingsTakeGradients(const Node& node) {
  const auto* backward = dynamic_cast<const BatchNormalizationBackwardFusedOp*>(node.op.get());
  return dynamic_cast<const BatchNormalizationAddOp*>(node.op.get()) == nullptr &&
         (backward == nullptr || !(backward->has_total() || backward->has_dbias));
}

// Like the cuda backend: normalizations take what they can.
bool NormalizationsTakeSums(const Node& node) {
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

TEST_F(PassesTest, TheFashionCnnHasSevenFusions) {
  Run(FashionCnn(), PoolingsTakeGradients);
  EXPECT_EQ(Count("Conv2DRelu"), 2);
  EXPECT_EQ(Count("DenseRelu"), 1);
  EXPECT_EQ(Count("Conv2DBackwardVariables"), 2);
  EXPECT_EQ(Count("MaxPool2DBackwardRelu"), 2);
  EXPECT_EQ(NodesGone(), 7);
  EXPECT_EQ(Count("Activation"), 0);
}

TEST_F(PassesTest, APredictionHasOnlyForwardFusions) {
  Run(FashionCnn(), PoolingsTakeGradients, PlanMode::kPredict);
  EXPECT_EQ(Count("Conv2DRelu"), 2);
  EXPECT_EQ(NodesGone(), 3);
}

TEST_F(PassesTest, ABackendGetsOnlyWhatItSupports) {
  Run(FashionCnn(),
      [](const Node& node) { return dynamic_cast<const FusedOp*>(node.op.get()) == nullptr; });
  EXPECT_EQ(NodesGone(), 0);
}

TEST_F(PassesTest, AReluIsNotFusedIfItsInputIsRead) {
  Run(
      [](ModelBuilding& model) {
        model.Dense(4);
        const ValueId unactivated = model.current();
        model.Relu().Add(unactivated);
      },
      PoolingsTakeGradients);
  EXPECT_EQ(Count("DenseRelu"), 0);
}

TEST_F(PassesTest, OnlyAReluWhoseResultTellsTheDerivativeIsFused) {
  for (const ActivationAttributes attributes :
       {ActivationAttributes{.negative_slope = 0.1}, ActivationAttributes{.threshold = 1},
        ActivationAttributes{.kind = ActivationAttributes::Kind::kTanh}}) {
    EXPECT_FALSE(IsPlainRelu(attributes));
    Run([&](ModelBuilding& model) { model.Dense(4).Activation(attributes); },
        PoolingsTakeGradients);
    EXPECT_EQ(Count("DenseRelu"), 0);
  }
}

// The gradient of a fused ReLU reads its result in place of its input, which nothing computes.
TEST_F(PassesTest, TheGradientOfAFusedReluReadsItsResult) {
  Run([](ModelBuilding& model) { model.Dense(4).Relu(); }, PoolingsTakeGradients);
  ASSERT_EQ(Count("ActivationBackward"), 1);
  for (const Node& node : plan_->nodes()) {
    if (std::string(node.op->type()) != "ActivationBackward") continue;
    EXPECT_EQ(node.inputs[0], node.inputs[1]);
  }
}

TEST_F(PassesTest, ANormalizationTakesItsReluAndTheGradient) {
  const Build build = [](ModelBuilding& model) {
    model.Conv2D(3, {}).BatchNormalization().Activation({.max_value = 6});
    model.Conv2D(3, {}).BatchNormalization().Relu();
  };
  Run(build, PoolingsTakeGradients);
  EXPECT_EQ(Count("BatchNormalizationRelu"), 2);
  ASSERT_EQ(FusedGradients().size(), 2u);
  EXPECT_LT(FusedGradients()[0].relu->max_value, 0);
  EXPECT_EQ(FusedGradients()[1].relu->max_value, 6);
  EXPECT_TRUE(FusedGradients()[0].center);
  // Two ReLUs, their gradients, and the gradients of the convolutions' biases.
  EXPECT_EQ(NodesGone(), 6);
}

// Another layer reads the gradient of the ReLU at the end of a residual block.
TEST_F(PassesTest, ASumTakesItsReluButNotTheGradient) {
  Run(
      [](ModelBuilding& model) {
        model.Conv2D(3, {}, 1, false);
        const ValueId shortcut = model.current();
        model.Conv2D(3, {}, 1, false).Add(shortcut).Relu();
      },
      PoolingsTakeGradients);
  EXPECT_EQ(Count("AddRelu"), 1);
  EXPECT_EQ(NodesGone(), 1);
}

TEST_F(PassesTest, APoolingTakesAReluBeforeANormalizationCan) {
  const Build build = [](ModelBuilding& model) {
    model.BatchNormalization().Relu().Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}});
  };
  Run(build, PoolingsTakeGradients);
  EXPECT_EQ(Count("MaxPool2DBackwardRelu"), 1);
  EXPECT_TRUE(FusedGradients().empty());
  Run(build, NormalizationsTakeSums);
  EXPECT_EQ(FusedGradients().size(), 1u);
}

// The nodes of a model with both convolutions and normalizations, and one normalization of a sum.
void NormalizedConvolutions(ModelBuilding& model) {
  model.Conv2D(3, {}).BatchNormalization().Relu();
  const ValueId shortcut = model.current();
  model.DepthwiseConv2D({}).BatchNormalization().Add(shortcut).BatchNormalization();
}

TEST_F(PassesTest, InInferenceAConvolutionTakesItsNormalization) {
  Run(NormalizedConvolutions, PoolingsTakeGradients, PlanMode::kPredict);
  EXPECT_EQ(Count("Conv2DNormalizationRelu"), 1);
  EXPECT_EQ(Count("DepthwiseConv2DNormalization"), 1);
  EXPECT_EQ(Count("BatchNormalization"), 1);
}

TEST_F(PassesTest, InTrainingNoConvolutionTakesANormalization) {
  for (const PlanMode mode : {PlanMode::kTrain, PlanMode::kPredictTraining}) {
    Run(NormalizedConvolutions, PoolingsTakeGradients, mode);
    EXPECT_EQ(Count("Conv2D"), 1);
    EXPECT_EQ(Count("DepthwiseConv2D"), 1);
  }
}

TEST_F(PassesTest, AConvolutionThatOthersReadTakesNoNormalization) {
  Run(
      [](ModelBuilding& model) {
        model.Conv2D(3, {});
        const ValueId convolved = model.current();
        model.BatchNormalization().Add(convolved);
      },
      PoolingsTakeGradients, PlanMode::kPredict);
  EXPECT_EQ(Count("Conv2D"), 1);
}

// A normalization takes the sum at the end of a residual block.
class ResidualSumTest : public PassesTest {
 protected:
  // The layer of the normalization that takes a sum; "" if none does.
  std::string Taker(const Build& build) {
    Run(build, PoolingsTakeGradients);
    EXPECT_EQ(Count("BatchNormalizationAdd") + Count("BatchNormalizationAddRelu"), 0);
    Run(build, NormalizationsTakeSums);
    std::string taker;
    for (const Node& node : plan_->nodes()) {
      if (dynamic_cast<const BatchNormalizationAddOp*>(node.op.get()) == nullptr) continue;
      EXPECT_EQ(taker, "");
      taker = node.layer;
    }
    return taker;
  }
  // The layers of the normalizations, in order.
  std::vector<std::string> Normalizations() const {
    std::vector<std::string> layers;
    for (const Node& node : before_) {
      if (std::string(node.op->type()) == "BatchNormalization") layers.push_back(node.layer);
    }
    return layers;
  }
};

TEST_F(ResidualSumTest, ItsReluGoesAlong) {
  const Build build = [](ModelBuilding& model) {
    model.Conv2D(3, {}).Relu();
    const ValueId shortcut = model.current();
    model.Conv2D(3, {}).BatchNormalization().Add(shortcut).Relu();
  };
  const std::string taker = Taker(build);
  EXPECT_EQ(taker, Normalizations()[0]);
  EXPECT_EQ(Count("BatchNormalizationAddRelu"), 1);
}

TEST_F(ResidualSumTest, ASumWithoutAReluIsTaken) {
  const std::string taker = Taker([](ModelBuilding& model) {
    const ValueId shortcut = model.current();
    model.BatchNormalization().Add(shortcut);
  });
  EXPECT_EQ(taker, Normalizations()[0]);
  EXPECT_EQ(Count("BatchNormalizationAdd"), 1);
}

TEST_F(ResidualSumTest, TheLastOfTwoNormalizationsTakesIt) {
  const std::string taker = Taker([](ModelBuilding& model) {
    const ValueId x = model.current();
    model.BatchNormalization();
    const ValueId shortcut = model.current();
    model.From(x).BatchNormalization().Add(shortcut).Relu();
  });
  EXPECT_EQ(taker, Normalizations()[1]);
}

TEST_F(ResidualSumTest, ASummandThatComesLaterIsNotTaken) {
  EXPECT_EQ(Taker([](ModelBuilding& model) {
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId normalized = model.current();
              model.From(x).Conv2D(2, {.size = {1, 1}}).Add(normalized).Relu();
            }),
            "");
}

TEST_F(ResidualSumTest, AnOutputThatOthersReadStays) {
  EXPECT_EQ(Taker([](ModelBuilding& model) {
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId normalized = model.current();
              model.Add(x).Relu().Add(normalized);
            }),
            "");
  EXPECT_EQ(Taker([](ModelBuilding& model) {  // twice the same
              model.BatchNormalization();
              model.Add(model.current()).Relu();
            }),
            "");
}

// The gradient of the ReLU at the end of a residual block: the normalization's gradient that reads
// it first computes it.
class ResidualGradientTest : public PassesTest {
 protected:
  // How many gradients of normalizations take it. The first of all must be among them.
  int Takers(const Build& build) {
    Run(build, PoolingsTakeGradients);
    for (const auto& op : FusedGradients()) EXPECT_FALSE(op.has_total());
    Run(build, NormalizationsTakeSums);
    int takers = 0, seen = 0;
    for (const Node& node : plan_->nodes()) {
      if (dynamic_cast<const BatchNormalizationBackwardOp*>(node.op.get()) == nullptr) continue;
      ++seen;
      const auto op = AsFused(static_cast<const BatchNormalizationBackwardOp&>(*node.op));
      if (!op.has_result) continue;
      EXPECT_EQ(seen, 1);
      EXPECT_TRUE(op.relu.has_value());
      EXPECT_FALSE(op.center);
      ++takers;
    }
    return takers;
  }
};

TEST_F(ResidualGradientTest, TheFirstReaderTakesIt) {
  EXPECT_EQ(Takers([](ModelBuilding& model) {
              model.Conv2D(3, {}).Relu();
              const ValueId shortcut = model.current();
              model.Conv2D(3, {}).BatchNormalization().Add(shortcut).Relu();
            }),
            1);
  EXPECT_EQ(Takers([](ModelBuilding& model) {  // both branches are normalized
              model.Conv2D(2, {}).Relu();
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId shortcut = model.current();
              model.From(x).BatchNormalization().Add(shortcut).Relu();
            }),
            1);
}

TEST_F(ResidualGradientTest, NoOtherActivationIsTaken) {
  EXPECT_EQ(Takers([](ModelBuilding& model) {
              model.Conv2D(2, {}).Relu();
              const ValueId shortcut = model.current();
              model.BatchNormalization().Add(shortcut).Activation({.negative_slope = 0.1});
            }),
            0);
  EXPECT_EQ(Takers([](ModelBuilding& model) {  // there is none
              model.Conv2D(2, {}).Relu();
              const ValueId shortcut = model.current();
              model.BatchNormalization().Add(shortcut);
            }),
            0);
}

TEST_F(ResidualGradientTest, ItStaysIfAnotherBranchReadsItBefore) {
  EXPECT_EQ(Takers([](ModelBuilding& model) {
              model.Conv2D(2, {}).Relu();
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId normalized = model.current();
              model.From(x).Conv2D(2, {.size = {1, 1}}).Add(normalized).Relu();
            }),
            0);
}

TEST_F(ResidualGradientTest, ANormalizationsOwnReluIsRecomputed) {
  EXPECT_EQ(Takers([](ModelBuilding& model) { model.Conv2D(2, {}).BatchNormalization().Relu(); }),
            0);
}

// Where the gradient of a block's output reaches it by two ways, the normalization adds them up.
class GradientSumTest : public PassesTest {
 protected:
  // Two residual blocks. The first ends with a ReLU or, as MobileNetV2's, without one. `ways`
  // layers of the second read it. No other gradient is a sum.
  static TrainingGraph Blocks(bool relu, int ways = 2) {
    ModelBuilding model({kBatch, 4, 4, 2});
    const ValueId shortcut = model.current();
    model.Conv2D(2, {}).BatchNormalization();
    if (relu) model.Add(shortcut).Relu();
    const ValueId block = model.current();
    model.Conv2D(2, {});
    for (int i = 1; i < ways; ++i) model.Add(block);
    return BuildTrainingGraph(model.Flatten().Dense(3).Build(), *kSparse).value();
  }
  // The only node of this type among those of the gradients.
  static const Node& Find(const TrainingGraph& training, const std::string& type) {
    const Node* found = nullptr;
    for (size_t i = training.loss_nodes_end; i < training.graph.nodes().size(); ++i) {
      if (training.graph.nodes()[i].op->type() != type) continue;
      EXPECT_EQ(found, nullptr);
      found = &training.graph.nodes()[i];
    }
    return *found;
  }
  // Whether the normalization's gradient takes a sum of gradients.
  bool IsTaken(const TrainingGraph& training) {
    RunTraining(training, PoolingsTakeGradients);
    for (const auto& op : FusedGradients()) EXPECT_FALSE(op.has_summand);
    RunTraining(training, NormalizationsTakeSums);
    const auto gradients = FusedGradients();
    return std::any_of(gradients.begin(), gradients.end(),
                       [](const auto& op) { return op.has_summand; });
  }
  // Makes another node read `value`, for a variable's gradient.
  static void ReadElsewhere(TrainingGraph& training, ValueId value) {
    training.pushed_values[0] =
        training.graph.Add(std::make_shared<ActivationOp>(), {value}, "elsewhere", "read").value();
  }
};

TEST_F(GradientSumTest, TheReluBehindItGoesAlong) {
  EXPECT_TRUE(IsTaken(Blocks(/*relu=*/true)));
  ASSERT_EQ(FusedGradients().size(), 1u);
  EXPECT_TRUE(FusedGradients()[0].has_result);
}

TEST_F(GradientSumTest, ItIsTakenWithoutARelu) {
  EXPECT_TRUE(IsTaken(Blocks(/*relu=*/false)));
  ASSERT_EQ(FusedGradients().size(), 1u);
  EXPECT_FALSE(FusedGradients()[0].has_result);
  EXPECT_TRUE(FusedGradients()[0].has_total());
}

TEST_F(GradientSumTest, OnlyASumOfTwoIsTaken) {
  for (const bool relu : {false, true}) {
    EXPECT_FALSE(IsTaken(Blocks(relu, 1)));
    EXPECT_FALSE(IsTaken(Blocks(relu, 3)));
  }
}

TEST_F(GradientSumTest, ASumThatTheCallerReadsIsNotTaken) {
  for (const bool relu : {false, true}) {
    TrainingGraph training = Blocks(relu);
    training.pushed_values[0] = Find(training, "Add").outputs[0];
    EXPECT_FALSE(IsTaken(training));
  }
}

// The input of a fused ReLU's gradient is not stored. Its output is, or the sum without a ReLU.
TEST_F(GradientSumTest, OtherReadersMayReadWhatIsStored) {
  for (const bool relu : {false, true}) {
    TrainingGraph training = Blocks(relu);
    ReadElsewhere(training, Find(training, "Add").outputs[0]);
    EXPECT_EQ(IsTaken(training), !relu);
  }
  TrainingGraph training = Blocks(/*relu=*/true);
  ReadElsewhere(training, Find(training, "BatchNormalizationBackward").inputs[1]);
  EXPECT_TRUE(IsTaken(training));
}

TEST_F(GradientSumTest, ItStaysIfAnotherBranchReadsItBefore) {
  ModelBuilding model({kBatch, 4, 4, 2});
  model.Conv2D(2, {}).Relu();
  const ValueId x = model.current();
  model.BatchNormalization();
  const ValueId normalized = model.current();
  model.From(x).Conv2D(2, {.size = {1, 1}}).Add(normalized);
  const ValueId block = model.current();
  model.Conv2D(2, {}).Add(block).Flatten().Dense(3);
  EXPECT_FALSE(IsTaken(BuildTrainingGraph(model.Build(), *kSparse).value()));
}

// The gradient of a bias before a normalization that removes it again.
class ZeroBiasGradientTest : public PassesTest {
 protected:
  // How many gradients of biases are known to be zero.
  int Zeros(const Build& build) {
    Run(build, PoolingsTakeGradients);
    for (const auto& op : FusedGradients()) EXPECT_FALSE(op.has_dbias);
    Run(build, NormalizationsTakeSums, PlanMode::kPredict);
    EXPECT_TRUE(FusedGradients().empty());
    Run(build, NormalizationsTakeSums);
    const auto gradients = FusedGradients();
    const int zeros = static_cast<int>(std::count_if(gradients.begin(), gradients.end(),
                                                     [](const auto& op) { return op.has_dbias; }));
    EXPECT_EQ(Gone("BiasBackward"), zeros);
    return zeros;
  }
};

TEST_F(ZeroBiasGradientTest, EachNormalizationByTheBatchsMeanTakesOne) {
  EXPECT_EQ(Zeros([](ModelBuilding& model) {
              model.Conv2D(3, {}).BatchNormalization().Relu();
              model.Conv2D(2, {}).BatchNormalization();
            }),
            2);
  EXPECT_EQ(Zeros([](ModelBuilding& model) { model.Flatten().Dense(4).BatchNormalization(); }), 1);
}

TEST_F(ZeroBiasGradientTest, ABiasThatIsNotRemovedHasAGradient) {
  EXPECT_EQ(Zeros([](ModelBuilding& model) {  // by the moving mean
              model.Conv2D(3, {}).BatchNormalization(/*frozen=*/true);
            }),
            0);
  EXPECT_EQ(Zeros([](ModelBuilding& model) {  // another op is between
              model.Conv2D(3, {}).Relu().BatchNormalization();
            }),
            0);
  EXPECT_EQ(Zeros([](ModelBuilding& model) {  // another op reads the biased sum, too
              model.Conv2D(2, {});
              const ValueId sum = model.current();
              model.BatchNormalization().Add(sum);
            }),
            0);
  EXPECT_EQ(Zeros([](ModelBuilding& model) {  // no bias
              model.Conv2D(3, {}, 1, /*bias=*/false).BatchNormalization();
            }),
            0);
}

// Zeros are the same in every dtype.
TEST_F(PassesTest, AZeroGradientIsFusedForAnyDtypes) {
  ModelBuilding model({kBatch, 4});
  model.ComputeIn(ComputeDtype::kBfloat16).Dense(4);
  model.ComputeIn(ComputeDtype::kFloat32).BatchNormalization().Dense(3);
  Run(model.Build(), NormalizationsTakeSums);
  ASSERT_EQ(FusedGradients().size(), 1u);
  EXPECT_TRUE(FusedGradients()[0].has_dbias);
}

TEST_F(PassesTest, NodesOfTwoDtypesAreNotFused) {
  ModelBuilding model({kBatch, 4});
  model.ComputeIn(ComputeDtype::kBfloat16).Dense(4);
  model.ComputeIn(ComputeDtype::kFloat32).Relu().Dense(3);
  const Graph graph = model.Build();
  Run(graph, [](const Node&) { return true; });
  EXPECT_EQ(Count("DenseRelu"), 0);
  // A backend without bfloat16 computes both in float32.
  Run(graph, [](const Node& node) { return node.compute_dtype == ComputeDtype::kFloat32; });
  EXPECT_EQ(Count("DenseRelu"), 1);
}

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
