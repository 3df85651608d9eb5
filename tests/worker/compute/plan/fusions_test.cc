#include "worker/compute/plan/fusions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/model/ops/activation.h"
#include "common/model/training_graph.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"

namespace shoal {
namespace {

int Count(const std::vector<int>& by_node) {
  return static_cast<int>(
      std::count_if(by_node.begin(), by_node.end(), [](int other) { return other >= 0; }));
}

Fusions Find(const Graph& model, PlanMode mode, const FusionChoice& choice = {}) {
  const TrainingGraph training = BuildTrainingGraph(model, *kSparse).value();
  return FindFusions(Plan(training, mode, 2), choice);
}

TEST(FusionsTest, OfTheFashionCnn) {
  const Fusions fusions = Find(FashionCnn(), PlanMode::kTrain);
  EXPECT_EQ(Count(fusions.relu), 3);
  EXPECT_EQ(Count(fusions.bias_gradient), 2);
  EXPECT_EQ(Count(fusions.relu_gradient), 2);
  EXPECT_EQ(std::count(fusions.absorbed.begin(), fusions.absorbed.end(), true), 7);
}

TEST(FusionsTest, OnlyTheForwardOnesInPrediction) {
  const Fusions fusions = Find(FashionCnn(), PlanMode::kPredict);
  EXPECT_EQ(Count(fusions.relu), 3);
  EXPECT_EQ(Count(fusions.bias_gradient), 0);
  EXPECT_EQ(Count(fusions.relu_gradient), 0);
}

TEST(FusionsTest, NotWhereTheUnactivatedValueIsRead) {
  ModelBuilding model({kBatch, 4});
  model.Dense(4);
  const ValueId unactivated = model.current();
  model.Relu().Add(unactivated).Dense(3);
  EXPECT_EQ(Count(Find(model.Build(), PlanMode::kTrain).relu), 0);
}

TEST(FusionsTest, OfANormalization) {
  ModelBuilding model({kBatch, 4, 4, 2});
  model.Conv2D(3, {}).BatchNormalization().Activation({.max_value = 6});
  model.Conv2D(3, {}).BatchNormalization().Relu().Flatten().Dense(3);
  const Fusions fusions = Find(model.Build(), PlanMode::kTrain);
  EXPECT_EQ(Count(fusions.relu), 2);
  EXPECT_EQ(std::count_if(fusions.cut_off.begin(), fusions.cut_off.end(),
                          [](const Fusions::CutOff& fused) { return fused.relu_gradient >= 0; }),
            2);
  // Two ReLUs, their gradients, and the gradients of the convolutions' biases.
  EXPECT_EQ(std::count(fusions.absorbed.begin(), fusions.absorbed.end(), true), 6);
}

// The end of a residual block; the gradient of its ReLU, which both branches read, stays.
TEST(FusionsTest, OfASum) {
  ModelBuilding model({kBatch, 4, 4, 2});
  model.Conv2D(3, {}, 1, false);
  const ValueId shortcut = model.current();
  model.Conv2D(3, {}, 1, false).Add(shortcut).Relu().Flatten().Dense(3);
  const Fusions fusions = Find(model.Build(), PlanMode::kTrain);
  EXPECT_EQ(Count(fusions.relu), 1);
  EXPECT_EQ(std::count(fusions.absorbed.begin(), fusions.absorbed.end(), true), 1);
}

// The normalization that is computed last takes the sum, whose ReLU goes along.
TEST(FusionsTest, OfANormalizationAndAResidual) {
  constexpr FusionChoice kTakesSums = {.normalizations_take_sums = true};
  const auto block = [](auto go_on) {
    ModelBuilding model({kBatch, 4, 4, 2});
    go_on(model);
    return model.Flatten().Dense(3).Build();
  };
  const auto add_node = [](const Graph& graph, int from) {
    for (int i = from; i < static_cast<int>(graph.nodes().size()); ++i) {
      if (std::string(graph.nodes()[i].op->type()) == "Add") return i;
    }
    return -1;
  };
  // Who takes the first sum, by the number of the normalization among all; -1: nobody.
  const auto taker = [&](const Graph& graph) {
    const Fusions fusions = Find(graph, PlanMode::kTrain, kTakesSums);
    const int sum = add_node(graph, 0);
    int number = 0, found = -1;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      if (std::string(graph.nodes()[i].op->type()) != "BatchNormalization") continue;
      if (fusions.residual_sum[i] == sum) found = number;
      ++number;
    }
    EXPECT_EQ(fusions.absorbed[sum], found >= 0);
    EXPECT_EQ(Count(Find(graph, PlanMode::kTrain).residual_sum), 0) << "unless it is asked for";
    return found;
  };
  const Graph identity = block([](ModelBuilding& model) {
    model.Conv2D(3, {}).Relu();
    const ValueId shortcut = model.current();
    model.Conv2D(3, {}).BatchNormalization().Add(shortcut).Relu();
  });
  EXPECT_EQ(taker(identity), 0);
  EXPECT_EQ(Count(Find(identity, PlanMode::kTrain, kTakesSums).relu), 2);
  EXPECT_EQ(taker(block([](ModelBuilding& model) {  // without a ReLU
              const ValueId shortcut = model.current();
              model.BatchNormalization().Add(shortcut);
            })),
            0);
  EXPECT_EQ(taker(block([](ModelBuilding& model) {
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId shortcut = model.current();
              model.From(x).BatchNormalization().Add(shortcut).Relu();
            })),
            1);
  EXPECT_EQ(taker(block([](ModelBuilding& model) {  // what is added comes later
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId normalized = model.current();
              model.From(x).Conv2D(2, {.size = {1, 1}}).Add(normalized).Relu();
            })),
            -1);
  EXPECT_EQ(taker(block([](ModelBuilding& model) {  // the normalized is read elsewhere, too
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId normalized = model.current();
              model.Add(x).Relu().Add(normalized);
            })),
            -1);
  EXPECT_EQ(taker(block([](ModelBuilding& model) {  // twice the same
              model.BatchNormalization();
              model.Add(model.current()).Relu();
            })),
            -1);
}

// The gradient behind a sum: the normalization that is the first to read it computes it.
TEST(FusionsTest, OfAResidualsGradient) {
  constexpr FusionChoice kTakesSums = {.normalizations_take_sums = true};
  // How many of the normalizations' gradients take it; the first of all is to be among them.
  const auto takers = [&](auto go_on) {
    ModelBuilding model({kBatch, 4, 4, 2});
    go_on(model);
    const Graph graph = model.Flatten().Dense(3).Build();
    EXPECT_EQ(Count(Find(graph, PlanMode::kTrain).residual_gradient), 0) << "unless asked for";
    const TrainingGraph training = BuildTrainingGraph(graph, *kSparse).value();
    const Fusions fusions = FindFusions(Plan(training, PlanMode::kTrain, 2), kTakesSums);
    int count = 0, seen = 0;
    for (size_t i = 0; i < training.graph.nodes().size(); ++i) {
      if (std::string(training.graph.nodes()[i].op->type()) != "BatchNormalizationBackward")
        continue;
      const int gradient = fusions.residual_gradient[i];
      ++seen;
      if (gradient < 0) continue;
      EXPECT_EQ(seen, 1);
      EXPECT_TRUE(fusions.absorbed[gradient]);
      EXPECT_EQ(fusions.cut_off[i].relu_gradient, -1);
      EXPECT_EQ(training.graph.nodes()[gradient].outputs[0], training.graph.nodes()[i].inputs[1]);
      ++count;
    }
    return count;
  };
  EXPECT_EQ(takers([](ModelBuilding& model) {
              model.Conv2D(3, {}).Relu();
              const ValueId shortcut = model.current();
              model.Conv2D(3, {}).BatchNormalization().Add(shortcut).Relu();
            }),
            1);
  EXPECT_EQ(takers([](ModelBuilding& model) {  // both branches are normalized
              model.Conv2D(2, {}).Relu();
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId shortcut = model.current();
              model.From(x).BatchNormalization().Add(shortcut).Relu();
            }),
            1);
  EXPECT_EQ(takers([](ModelBuilding& model) {  // what cuts off is no ReLU
              model.Conv2D(2, {}).Relu();
              const ValueId shortcut = model.current();
              model.BatchNormalization().Add(shortcut).Activation({.negative_slope = 0.1});
            }),
            0);
  EXPECT_EQ(takers([](ModelBuilding& model) {  // nothing cuts off
              model.Conv2D(2, {}).Relu();
              const ValueId shortcut = model.current();
              model.BatchNormalization().Add(shortcut);
            }),
            0);
  EXPECT_EQ(takers([](ModelBuilding& model) {  // the other branch reads it before
              model.Conv2D(2, {}).Relu();
              const ValueId x = model.current();
              model.BatchNormalization();
              const ValueId normalized = model.current();
              model.From(x).Conv2D(2, {.size = {1, 1}}).Add(normalized).Relu();
            }),
            0);
  EXPECT_EQ(takers([](ModelBuilding& model) {  // it is cut off without being left
              model.Conv2D(2, {}).BatchNormalization().Relu();
            }),
            0);
}

// Where the gradient of what a block gave reaches it by two ways, the normalization adds them up.
class GradientSumsTest : public ::testing::Test {
 protected:
  static constexpr FusionChoice kTakesSums = {.normalizations_take_sums = true};

  // Of two residual blocks, the first of which ends with a ReLU or, as MobileNetV2's, without one,
  // and is read by as many layers of the second as it has `ways`. No other gradient is a sum.
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
  static const Node& At(const TrainingGraph& training, int index) {
    return training.graph.nodes()[index];
  }
  // The only node of this type, among those of the gradients; -1: there is none.
  static int NodeOf(const TrainingGraph& training, const std::string& type) {
    int found = -1;
    for (size_t i = training.loss_nodes_end; i < training.graph.nodes().size(); ++i) {
      if (At(training, static_cast<int>(i)).op->type() != type) continue;
      EXPECT_EQ(found, -1);
      found = static_cast<int>(i);
    }
    return found;
  }
  // Whether the normalization's gradient takes the sum, by a plan that may compute parts of a batch
  // or not.
  static bool IsTaken(const TrainingGraph& training, const FusionChoice& choice = kTakesSums) {
    const int sum = NodeOf(training, "Add");
    const int normalization = NodeOf(training, "BatchNormalizationBackward");
    const Fusions fusions = FindFusions(Plan(training, PlanMode::kTrain, 2), choice);
    const Fusions of_parts =
        FindFusions(Plan(training, PlanMode::kTrain, 2, {}, {.in_parts = true}), choice);
    EXPECT_EQ(fusions.gradient_sum, of_parts.gradient_sum);
    const bool taken = fusions.gradient_sum[normalization] == sum && sum >= 0;
    EXPECT_EQ(Count(fusions.gradient_sum), taken ? 1 : 0);
    EXPECT_TRUE(sum < 0 || fusions.absorbed[sum] == taken);
    return taken;
  }
  // What else reads `value`, for a variable's gradient.
  static void ReadElsewhere(TrainingGraph& training, ValueId value) {
    training.pushed_values[0] =
        training.graph.Add(std::make_shared<ActivationOp>(), {value}, "elsewhere", "read").value();
  }
};

TEST_F(GradientSumsTest, WithTheReluBehindThem) {
  const TrainingGraph training = Blocks(/*relu=*/true);
  EXPECT_TRUE(IsTaken(training));
  EXPECT_FALSE(IsTaken(training, {})) << "unless asked for";
  const Fusions fusions = FindFusions(Plan(training, PlanMode::kTrain, 2), kTakesSums);
  const int relu = fusions.residual_gradient[NodeOf(training, "BatchNormalizationBackward")];
  ASSERT_GE(relu, 0);
  EXPECT_EQ(At(training, relu).inputs[2], At(training, NodeOf(training, "Add")).outputs[0]);
}

TEST_F(GradientSumsTest, WithoutARelu) {
  const TrainingGraph training = Blocks(/*relu=*/false);
  EXPECT_TRUE(IsTaken(training));
  EXPECT_FALSE(IsTaken(training, {})) << "unless asked for";
  EXPECT_EQ(At(training, NodeOf(training, "BatchNormalizationBackward")).inputs[1],
            At(training, NodeOf(training, "Add")).outputs[0]);
}

TEST_F(GradientSumsTest, NotOfOneNorOfThree) {
  for (const bool relu : {false, true}) {
    EXPECT_FALSE(IsTaken(Blocks(relu, 1)));
    EXPECT_FALSE(IsTaken(Blocks(relu, 3)));
  }
}

TEST_F(GradientSumsTest, NotWhatTheCallerReads) {
  for (const bool relu : {false, true}) {
    TrainingGraph training = Blocks(relu);
    training.pushed_values[0] = At(training, NodeOf(training, "Add")).outputs[0];
    EXPECT_FALSE(IsTaken(training));
  }
}

// What goes into a ReLU's gradient is kept by nobody; what comes out of it, or of the sum itself
// where there is no ReLU, is.
TEST_F(GradientSumsTest, ReadElsewhere) {
  for (const bool relu : {false, true}) {
    TrainingGraph training = Blocks(relu);
    ReadElsewhere(training, At(training, NodeOf(training, "Add")).outputs[0]);
    EXPECT_EQ(IsTaken(training), !relu);
  }
  TrainingGraph training = Blocks(/*relu=*/true);
  ReadElsewhere(training, At(training, NodeOf(training, "BatchNormalizationBackward")).inputs[1]);
  EXPECT_TRUE(IsTaken(training));
}

TEST_F(GradientSumsTest, NotWhereAnotherReadsThemBefore) {
  ModelBuilding model({kBatch, 4, 4, 2});
  model.Conv2D(2, {}).Relu();
  const ValueId x = model.current();
  model.BatchNormalization();
  const ValueId normalized = model.current();
  model.From(x).Conv2D(2, {.size = {1, 1}}).Add(normalized);
  const ValueId block = model.current();
  model.Conv2D(2, {}).Add(block).Flatten().Dense(3);
  const TrainingGraph training = BuildTrainingGraph(model.Build(), *kSparse).value();
  const Fusions fusions = FindFusions(Plan(training, PlanMode::kTrain, 2), kTakesSums);
  EXPECT_EQ(Count(fusions.gradient_sum), 0);
}

// The gradient of a bias that a normalization takes off again.
TEST(FusionsTest, OfAZeroGradient) {
  constexpr FusionChoice kTakesZeros = {.normalizations_take_zeros = true};
  // How many gradients are known to be zero.
  const auto zeros = [&](auto go_on) {
    ModelBuilding model({kBatch, 4, 4, 2});
    go_on(model);
    const Graph graph = model.Flatten().Dense(3).Build();
    EXPECT_EQ(Count(Find(graph, PlanMode::kTrain).zero_gradient), 0) << "unless asked for";
    EXPECT_EQ(Count(Find(graph, PlanMode::kPredict, kTakesZeros).zero_gradient), 0);
    const TrainingGraph training = BuildTrainingGraph(graph, *kSparse).value();
    const Fusions fusions = FindFusions(Plan(training, PlanMode::kTrain, 2), kTakesZeros);
    for (const int zero : fusions.zero_gradient) {
      if (zero < 0) continue;
      EXPECT_STREQ(training.graph.nodes()[zero].op->type(), "BiasBackward");
      EXPECT_TRUE(fusions.absorbed[zero]);
      EXPECT_EQ(std::count(fusions.bias_gradient.begin(), fusions.bias_gradient.end(), zero), 0);
    }
    return Count(fusions.zero_gradient);
  };
  EXPECT_EQ(zeros([](ModelBuilding& model) {
              model.Conv2D(3, {}).BatchNormalization().Relu();
              model.Conv2D(2, {}).BatchNormalization();
            }),
            2);
  EXPECT_EQ(zeros([](ModelBuilding& model) { model.Flatten().Dense(4).BatchNormalization(); }), 1);
  EXPECT_EQ(zeros([](ModelBuilding& model) {  // by the moving mean
              model.Conv2D(3, {}).BatchNormalization(/*frozen=*/true);
            }),
            0);
  EXPECT_EQ(zeros([](ModelBuilding& model) {  // something is between
              model.Conv2D(3, {}).Relu().BatchNormalization();
            }),
            0);
  EXPECT_EQ(zeros([](ModelBuilding& model) {  // the sum is read elsewhere, too
              model.Conv2D(2, {});
              const ValueId sum = model.current();
              model.BatchNormalization().Add(sum);
            }),
            0);
  EXPECT_EQ(zeros([](ModelBuilding& model) {  // no bias
              model.Conv2D(3, {}, 1, /*bias=*/false).BatchNormalization();
            }),
            0);
}

TEST(FusionsTest, APoolingsReluIsNotANormalizationsToo) {
  ModelBuilding model({kBatch, 4, 4, 2});
  model.BatchNormalization().Relu().Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}});
  const Fusions fusions = Find(model.Flatten().Dense(3).Build(), PlanMode::kTrain);
  EXPECT_EQ(Count(fusions.relu_gradient), 1);
  for (const Fusions::CutOff& fused : fusions.cut_off) EXPECT_EQ(fused.relu_gradient, -1);
}

TEST(FusionsTest, NotWhatItsResultDoesNotTell) {
  for (const ActivationAttributes attributes :
       {ActivationAttributes{.negative_slope = 0.1}, ActivationAttributes{.threshold = 1},
        ActivationAttributes{.kind = ActivationAttributes::Kind::kTanh}}) {
    EXPECT_FALSE(IsPlainRelu(attributes));
    ModelBuilding model({kBatch, 4});
    model.Dense(4).Activation(attributes).Dense(3);
    EXPECT_EQ(Count(Find(model.Build(), PlanMode::kTrain).relu), 0);
  }
}

}  // namespace
}  // namespace shoal
