// Every gradient rule against finite differences, in double, by the reference kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/worker/compute/double_interpreter.h"
#include "tests/worker/compute/model_building.h"

namespace shoal {
namespace {

using Kind = LossAttributes::Kind;

struct Case {
  std::string name;
  std::function<Graph()> build;
  LossAttributes loss;
};
void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.name; }

constexpr int64_t kExamples = 3;
constexpr unsigned kSeed = 20;

std::vector<double> Random(std::mt19937& random, size_t count) {
  std::normal_distribution<double> normal(0, 0.7);
  std::vector<double> values(count);
  for (double& value : values) value = normal(random);
  return values;
}

// A target that the loss takes.
std::vector<double> RandomTarget(std::mt19937& random, const LossAttributes& loss, Shape shape) {
  std::vector<double> target = Random(random, ElementCount(shape));
  if (loss.kind == Kind::kSparseCategoricalCrossentropy) {
    for (double& label : target) label = random() % 3;
  } else if (loss.kind == Kind::kCategoricalCrossentropy) {
    for (double& share : target) share = std::abs(share);
  }
  return target;
}

class GradientTest : public ::testing::TestWithParam<Case> {};

TEST_P(GradientTest, EqualsFiniteDifferences) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const Graph model = GetParam().build();
  const auto training = BuildTrainingGraph(model, GetParam().loss);
  ASSERT_TRUE(training.ok()) << training.status();
  DoubleInterpreter interpreter(*training, kExamples);
  Shape input_shape = model.value(model.inputs()[0]).shape;
  input_shape[0] = kExamples;
  interpreter.SetInput(0, Random(random, ElementCount(input_shape)));
  Shape target_shape = training->graph.value(training->target).shape;
  target_shape[0] = kExamples;
  interpreter.SetInput(1, RandomTarget(random, GetParam().loss, target_shape));
  const int variables = static_cast<int>(model.variables().size());
  for (int v = 0; v < variables; ++v) {
    interpreter.variable(v) = Random(random, ElementCount(model.variables()[v].shape));
  }

  interpreter.Run();
  std::vector<std::vector<double>> gradients;
  for (int v = 0; v < variables; ++v) gradients.push_back(interpreter.gradient(v));

  double largest = 0;
  for (int v = 0; v < variables; ++v) {
    for (size_t i = 0; i < gradients[v].size(); ++i) {
      constexpr double kStep = 1e-6;
      double& weight = interpreter.variable(v)[i];
      const double original = weight;
      weight = original + kStep;
      const double above = interpreter.Run();
      weight = original - kStep;
      const double below = interpreter.Run();
      weight = original;
      const double expected = (above - below) / (2 * kStep);
      ASSERT_NEAR(gradients[v][i], expected, 1e-7 + 1e-6 * std::abs(expected))
          << model.variables()[v].name << "[" << i << "]";
      largest = std::max(largest, std::abs(expected));
    }
  }
  EXPECT_GT(largest, 1e-4) << "the model has no gradient to speak of";
}

const LossAttributes kMse = {.kind = Kind::kMeanSquaredError};

// A model in which the op under test comes between layers with variables, so that its own gradients
// and those it passes on are seen.
Case Image(const std::string& name, std::function<void(ModelBuilding&)> op) {
  return {name,
          [op] {
            ModelBuilding model({kBatch, 5, 6, 2});
            model.Conv2D(4, {.size = {2, 2}, .padding = Padding::kSame});
            op(model);
            return model.Build();
          },
          kMse};
}

Case Activated(const std::string& name, ActivationAttributes attributes) {
  return {name,
          [attributes] {
            return ModelBuilding({kBatch, 4}).Dense(7).Activation(attributes).Dense(2).Build();
          },
          kMse};
}

Case WithLoss(const std::string& name, LossAttributes loss, bool softmax, bool probabilities) {
  return {name,
          [softmax, probabilities] {
            ModelBuilding model({kBatch, 4});
            model.Dense(3);
            if (softmax) model.Softmax();
            if (probabilities) {
              model.Activation({.kind = ActivationAttributes::Kind::kSigmoid});
            }
            return model.Build();
          },
          loss};
}

std::vector<Case> Cases() {
  using Activation = ActivationAttributes::Kind;
  const auto max = Pool2DOp::Kind::kMax, average = Pool2DOp::Kind::kAverage;
  return {
      {"Dense",
       [] {
         return ModelBuilding({kBatch, 4}).Dense(5).Dense(3).Build();
       },
       kMse},
      {"DenseOfSequences",
       [] {
         return ModelBuilding({kBatch, 2, 4}).Dense(5).Dense(3, false).Build();
       },
       kMse},
      Image("Conv2D",
            [](ModelBuilding& m) {
              m.Conv2D(3, {.size = {3, 2}});
            }),
      Image("Conv2DSameStrides",
            [](ModelBuilding& m) {
              m.Conv2D(3, {.size = {3, 3}, .strides = {2, 3}, .padding = Padding::kSame}, 1, false);
            }),
      Image("Conv2DDilated",
            [](ModelBuilding& m) {
              m.Conv2D(2, {.size = {2, 3}, .dilation = {3, 2}, .padding = Padding::kSame});
            }),
      Image("Conv2DGroups",
            [](ModelBuilding& m) {
              m.Conv2D(6, {.size = {3, 3}}, 2);
            }),
      Image("Conv2DStridesBeyondKernel",
            [](ModelBuilding& m) {
              m.Conv2D(3, {.size = {1, 2}, .strides = {3, 3}});
            }),
      Image("MaxPool",
            [=](ModelBuilding& m) {
              m.Pool2D(max, {.size = {2, 2}, .strides = {2, 2}});
            }),
      Image("MaxPoolOverlappingSame",
            [=](ModelBuilding& m) {
              m.Pool2D(max, {.size = {3, 3}, .strides = {2, 1}, .padding = Padding::kSame});
            }),
      Image("AveragePool",
            [=](ModelBuilding& m) {
              m.Pool2D(average, {.size = {3, 2}, .strides = {1, 2}});
            }),
      Image("AveragePoolSame",
            [=](ModelBuilding& m) {
              m.Pool2D(average, {.size = {3, 3}, .strides = {2, 2}, .padding = Padding::kSame});
            }),
      Image("GlobalAveragePool", [](ModelBuilding& m) { m.GlobalAveragePool2D(); }),
      Image("GlobalAveragePoolKeepDims", [](ModelBuilding& m) { m.GlobalAveragePool2D(true); }),
      Image("Flatten", [](ModelBuilding& m) { m.Flatten().Dense(2); }),
      Image("Rescale",
            [](ModelBuilding& m) {
              m.Rescale({1, -2, 3, 0.5}, {1, 0, 2, -1}).Conv2D(2, {});
            }),
      Image("Dropout", [](ModelBuilding& m) { m.Dropout(0.4).Conv2D(2, {}); }),
      Image("AddOfBranches",
            [](ModelBuilding& m) {
              const ValueId shared = m.current();
              m.Conv2D(4, {}).Relu().Add(shared).Add(shared);
            }),
      Activated("Relu", {}),
      Activated("ReluAllOptions", {.max_value = 1, .negative_slope = 0.2, .threshold = 0.3}),
      Activated("LeakyRelu", {.kind = Activation::kLeakyRelu, .negative_slope = 0.3}),
      Activated("Tanh", {.kind = Activation::kTanh}),
      Activated("Sigmoid", {.kind = Activation::kSigmoid}),
      Activated("Elu", {.kind = Activation::kElu, .negative_slope = 0.7}),
      Activated("Selu", {.kind = Activation::kSelu}),
      Activated("Softplus", {.kind = Activation::kSoftplus}),
      Activated("Softsign", {.kind = Activation::kSoftsign}),
      Activated("Silu", {.kind = Activation::kSilu}),
      Activated("Gelu", {.kind = Activation::kGelu}),
      Activated("Exponential", {.kind = Activation::kExponential}),
      Activated("HardSigmoid", {.kind = Activation::kHardSigmoid}),
      WithLoss("Softmax", kMse, true, false),
      WithLoss("SparseFromLogits",
               {.kind = Kind::kSparseCategoricalCrossentropy, .from_logits = true}, false, false),
      WithLoss("SparseAfterSoftmax", {.kind = Kind::kSparseCategoricalCrossentropy}, true, false),
      WithLoss("SparseOfProbabilities", {.kind = Kind::kSparseCategoricalCrossentropy}, false,
               true),
      WithLoss(
          "CategoricalFromLogitsSmoothed",
          {.kind = Kind::kCategoricalCrossentropy, .from_logits = true, .label_smoothing = 0.1},
          false, false),
      WithLoss("CategoricalOfProbabilities",
               {.kind = Kind::kCategoricalCrossentropy, .label_smoothing = 0.2}, false, true),
      {"SparseOfSequences",
       [] {
         return ModelBuilding({kBatch, 2, 4}).Dense(3).Build();
       },
       {.kind = Kind::kSparseCategoricalCrossentropy, .from_logits = true}},
  };
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace shoal
