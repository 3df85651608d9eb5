#include "worker/compute/plan/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/model/ops/activation.h"
#include "common/model/training/training_graph.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/plan/passes_fixture.h"
#include "worker/compute/plan/fused_ops.h"
#include "worker/compute/plan/plain_relu.h"

namespace shoal {
namespace {

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

}  // namespace
}  // namespace shoal
