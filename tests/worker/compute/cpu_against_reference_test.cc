// The cpu backend against the reference backend where ops meet: what it fuses, crops and passes on
// in its own layouts, and what becomes of not-a-number. Ops by themselves: op_conformance_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

const auto kMse = LossOf("MeanSquaredError");

std::unique_ptr<ModelRunner> MakeRunner(const Graph& model, const std::shared_ptr<const Loss>& loss,
                                        const std::string& backend, int threads) {
  ModelRunner::Options options;
  options.model = model;
  options.loss = loss;
  options.backend = backend;
  options.threads = threads;
  options.seed = 5;
  // One of the suites, which is none of a worker's.
  auto suite_backend = CreateSuiteBackend(backend);
  EXPECT_TRUE(suite_backend.ok()) << suite_backend.status();
  (*suite_backend)->UseThreads(threads);
  auto runner = GraphRunner::Create(std::move(options), *std::move(suite_backend));
  EXPECT_TRUE(runner.ok()) << runner.status();
  return runner.ok() ? *std::move(runner) : nullptr;
}

// Values of about the same size after every layer.
std::vector<float> RandomParameters(const Graph& model, const ModelLayout& layout,
                                    std::mt19937& random) {
  std::vector<float> parameters(layout.size);
  for (size_t v = 0; v < model.variables().size(); ++v) {
    const Shape& shape = model.variables()[v].shape;
    const ModelLayout::Extent& extent = layout.variables[v];
    const float fan_in = static_cast<float>(extent.size / shape.back());
    const float spread = shape.size() == 1 ? 0.3f : 1.2f / std::sqrt(fan_in);
    const std::vector<float> values = RandomFloats(random, extent.size, spread);
    std::copy(values.begin(), values.end(), parameters.begin() + extent.offset);
    if (model.variables()[v].name.find("moving_variance") == std::string::npos) continue;
    for (int64_t i = extent.offset; i < extent.offset + extent.size; ++i) {
      parameters[i] = std::abs(parameters[i]) + 0.1f;
    }
  }
  return parameters;
}

// Predictions, loss and all gradients of one batch size on both backends.
void ExpectSame(ModelRunner& cpu, ModelRunner& reference, const Graph& model,
                const std::shared_ptr<const Loss>& loss, int64_t examples, double bound,
                std::mt19937& random) {
  SCOPED_TRACE(testing::Message() << examples << " examples");
  const RandomBatch data(random, model, *loss, examples);
  const std::vector<float> parameters = RandomParameters(model, reference.layout(), random);
  std::vector<float> expected(parameters.size()), actual(parameters.size());
  const auto expected_result = reference.Train(data.batch(), 3, parameters, expected, nullptr);
  const auto actual_result = cpu.Train(data.batch(), 3, parameters, actual, nullptr);
  ASSERT_TRUE(expected_result.ok()) << expected_result.status();
  ASSERT_TRUE(actual_result.ok()) << actual_result.status();
  EXPECT_NEAR(actual_result->loss_sum, expected_result->loss_sum,
              bound * std::abs(expected_result->loss_sum));
  // Some gradients are small differences of large sums.
  const double min_gradient = 0.01 * Largest(expected) + 1e-6;
  for (size_t v = 0; v < model.variables().size(); ++v) {
    const ModelLayout::Extent& extent = reference.layout().variables[v];
    ExpectNear(std::span(actual).subspan(extent.offset, extent.size),
               std::span(expected).subspan(extent.offset, extent.size), bound, min_gradient,
               "gradient of " + model.variables()[v].name);
  }
  for (const bool training : {false, true}) {
    const auto wanted = reference.Predict(data.batch(), parameters, training);
    const auto got = cpu.Predict(data.batch(), parameters, training);
    ASSERT_TRUE(wanted.ok() && got.ok()) << got.status();
    ExpectNear(*got, *wanted, bound, 1e-6, "prediction");
  }
}

void CompareBackends(const Graph& model, const std::shared_ptr<const Loss>& loss, double bound,
                     std::mt19937& random, const std::string& backend = "cpu") {
  for (const int threads : {1, 2}) {
    auto reference = MakeRunner(model, loss, "reference", 1);
    auto compared = MakeRunner(model, loss, backend, threads);
    ASSERT_TRUE(reference != nullptr && compared != nullptr);
    // A full batch, the last smaller one, and a single example.
    for (const int64_t examples : {5, 3, 1}) {
      ExpectSame(*compared, *reference, model, loss, examples, bound, random);
    }
  }
}

int64_t Pick(std::mt19937& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % (most - least + 1));
}

Window RandomWindow(std::mt19937& random, bool dilated) {
  Window window;
  for (int axis = 0; axis < 2; ++axis) {
    window.size[axis] = Pick(random, 1, 4);
    window.strides[axis] = Pick(random, 1, 5);
    // Keras has strides or dilation, not both.
    if (dilated) {
      window.strides[axis] = 1;
      window.dilation[axis] = Pick(random, 1, 3);
    }
  }
  window.padding = random() % 2 == 0 ? Padding::kSame : Padding::kValid;
  return window;
}

bool Fits(const Window& window, const Shape& image) {
  return window.OutputExtent(0, image[1]) > 0 && window.OutputExtent(1, image[2]) > 0;
}

// An image of odd size and channels, a random convolution and activation, something in the middle,
// a second convolution, so that gradients pass through it.
class RandomImageModelTest : public ::testing::TestWithParam<unsigned> {
 protected:
  Window FittingWindow(const Shape& image, bool dilated) {
    Window window = RandomWindow(random_, dilated);
    while (!Fits(window, image)) window = RandomWindow(random_, dilated);
    return window;
  }

  ModelBuilding StartModel() {
    ModelBuilding model({kBatch, Pick(random_, 7, 15), Pick(random_, 7, 15), Pick(random_, 1, 5)});
    model.Conv2D(Pick(random_, 1, 4) * 6, {.size = {3, 3}, .padding = Padding::kSame});
    if (random_() % 2 == 0) model.Relu();
    return model;
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(RandomImageModelTest, Conv2D) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  ModelBuilding model = StartModel();
  const int64_t groups = std::vector<int64_t>{1, 1, 2, 3, 6}[random_() % 5];
  model.Conv2D(groups * Pick(random_, 1, 9), FittingWindow(model.shape(), random_() % 2 == 0),
               groups, random_() % 3 > 0);
  if (random_() % 2 == 0) model.Activation({.max_value = 1.5});
  CompareBackends(model.Build(), kMse, 2e-5, random_);
}

TEST_P(RandomImageModelTest, Pool2D) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  ModelBuilding model = StartModel();
  const auto kind = random_() % 2 == 0 ? Pool2DOp::Kind::kMax : Pool2DOp::Kind::kAverage;
  model.Pool2D(kind, FittingWindow(model.shape(), false));
  if (random_() % 2 == 0) model.Relu();
  if (random_() % 2 == 0) model.Conv2D(5, {});
  CompareBackends(model.Build(), kMse, 2e-5, random_);
}

// Poolings and strides without padding, of which the cpu backend crops what they do not read.
TEST_P(RandomImageModelTest, UnusedBorders) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  ModelBuilding model({kBatch, Pick(random_, 20, 30), Pick(random_, 20, 30), Pick(random_, 1, 3)});
  model.Rescale({0.5}, {0.1});
  for (int i = 0; i < 2; ++i) {
    model.Conv2D(Pick(random_, 1, 20), {.size = {Pick(random_, 1, 3), Pick(random_, 1, 3)},
                                        .strides = {Pick(random_, 1, 2), Pick(random_, 1, 2)}});
    model.Relu().Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}, .strides = {2, 2}});
  }
  CompareBackends(model.Flatten().Dense(3).Build(), kMse, 2e-5, random_);
}

// Normalizations that a ReLU goes with, alone and not, and one whose ReLU's gradient two nodes
// want.
TEST_P(RandomImageModelTest, InvertedResidual) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  const Window same = {.size = {3, 3}, .padding = Padding::kSame};
  ModelBuilding model = StartModel();
  const bool frozen = random_() % 4 == 0;
  model.BatchNormalization(frozen).Activation({.max_value = 6});
  const ValueId shared = model.current();
  const int64_t channels = model.shape()[3];
  model.Conv2D(Pick(random_, 1, 20), {}, 1, false)
      .BatchNormalization()
      .Activation({.max_value = 1});
  // As keras.applications pads where it strides.
  if (random_() % 2 == 0) {
    model.Pad({.before = {1, 1, 0}, .after = {1, 1, 0}}).DepthwiseConv2D({.size = {3, 3}});
  } else {
    model.DepthwiseConv2D(same);
  }
  model.BatchNormalization(frozen).Relu();
  model.Conv2D(channels, {}, 1, false).BatchNormalization().Add(shared);
  if (random_() % 2 == 0) model.Relu();
  if (random_() % 2 == 0) {
    model.BatchNormalization().Relu().Pool2D(Pool2DOp::Kind::kMax, {.size = {2, 2}});
  }
  const Graph built = model.Conv2D(3, {.size = {2, 2}}).Build();
  // What comes before a normalization has gradients that are zero but for rounding.
  for (const char* backend : {"cpu", "cuda_on_cpu"}) {
    SCOPED_TRACE(backend);
    CompareBackends(built, kMse, 1e-3, random_, backend);
  }
}

TEST_P(RandomImageModelTest, BranchesAndReshapes) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  ModelBuilding model = StartModel();
  const ValueId shared = model.current();
  model.Conv2D(model.shape()[3], {.size = {3, 3}, .padding = Padding::kSame}).Relu().Add(shared);
  model.Rescale({0.5}, {0.1}).Dropout(0.3).Flatten().Dense(Pick(random_, 1, 40)).Relu().Dense(3);
  CompareBackends(model.Build(),
                  LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})"), 2e-5,
                  random_);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomImageModelTest, ::testing::Range(0u, 25u));

class RandomDenseModelTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomDenseModelTest, Dense) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::mt19937 random(GetParam());
  Shape input = {kBatch, Pick(random, 1, 70)};
  if (random() % 3 == 0) input.insert(input.begin() + 1, Pick(random, 1, 4));
  ModelBuilding model(input);
  model.Dense(Pick(random, 1, 90), random() % 2 == 0).Relu().Dense(Pick(random, 1, 50)).Relu();
  model.Dense(Pick(random, 2, 12));
  if (random() % 2 == 0) model.Softmax();
  CompareBackends(model.Build(), kMse, 2e-5, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDenseModelTest, ::testing::Range(0u, 20u));

struct NamedActivation {
  std::string name;
  ActivationAttributes attributes;
};
void PrintTo(const NamedActivation& activation, std::ostream* out) { *out << activation.name; }

class ActivationTest : public ::testing::TestWithParam<NamedActivation> {};

// Not-a-number where the other has it; nothing is said of the other numbers.
void ExpectSameNans(std::span<const float> actual, std::span<const float> expected,
                    const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << what << "[" << i << "]";
  }
}

// A model that has met not-a-number must show it: in the predictions, the loss and the gradients.
void CompareNans(const Graph& model, const Batch& batch, const std::vector<float>& parameters) {
  auto reference = MakeRunner(model, kMse, "reference", 1);
  auto cpu = MakeRunner(model, kMse, "cpu", 1);
  ASSERT_TRUE(reference != nullptr && cpu != nullptr);
  std::vector<float> expected(parameters.size()), actual(parameters.size());
  const auto expected_result = reference->Train(batch, 3, parameters, expected, nullptr);
  const auto actual_result = cpu->Train(batch, 3, parameters, actual, nullptr);
  ASSERT_TRUE(expected_result.ok() && actual_result.ok()) << actual_result.status();
  EXPECT_TRUE(std::isnan(expected_result->loss_sum));
  EXPECT_TRUE(std::isnan(actual_result->loss_sum));
  ExpectSameNans(actual, expected, "gradients");
  ExpectSameNans(cpu->Predict(batch, parameters, false).value(),
                 reference->Predict(batch, parameters, false).value(), "prediction");
}

// Not-a-number in one of three examples, then in one kernel.
void CompareNans(const Graph& model) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(3);
  const ModelLayout layout(model.variables());
  RandomBatch data(random, model, *kMse, 3);
  std::vector<float> parameters = RandomParameters(model, layout, random);
  const float input = std::exchange(data.input[data.input.size() / 2], nan);
  CompareNans(model, data.batch(), parameters);
  data.input[data.input.size() / 2] = input;
  parameters[layout.variables[0].offset] = nan;
  CompareNans(model, data.batch(), parameters);
}

TEST_P(ActivationTest, KeepsNotANumber) {
  const ActivationAttributes& attributes = GetParam().attributes;
  CompareNans(ModelBuilding({kBatch, 9}).Dense(18).Activation(attributes).Dense(4).Build());
  CompareNans(ModelBuilding({kBatch, 6, 5, 3})
                  .Conv2D(18, {.size = {3, 3}})
                  .Activation(attributes)
                  .Conv2D(4, {.size = {2, 2}})
                  .Build());
  // On its own, not fused with the layer before it.
  CompareNans(ModelBuilding({kBatch, 9}).Activation(attributes).Dense(4).Build());
}

using Activation = ActivationAttributes::Kind;
// Once: a chain of exponentials leaves the range of numbers.
TEST(CpuAgainstReferenceTest, ExponentialKeepsNotANumber) {
  CompareNans(ModelBuilding({kBatch, 6, 5, 3})
                  .Conv2D(18, {.size = {1, 1}})
                  .Activation({.kind = Activation::kExponential})
                  .Build());
}

TEST(CpuAgainstReferenceTest, LayersKeepNotANumber) {
  const auto image = [] {
    return std::move(ModelBuilding({kBatch, 6, 6, 2}).Conv2D(18, {.size = {3, 3}}).Relu());
  };
  CompareNans(
      image().Pool2D(Pool2DOp::Kind::kAverage, {.size = {2, 2}, .strides = {2, 2}}).Build());
  CompareNans(image().GlobalAveragePool2D().Dense(3).Softmax().Build());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ActivationTest,
    ::testing::Values(NamedActivation{"Relu", {}}, NamedActivation{"Relu6", {.max_value = 6}},
                      NamedActivation{"ReluAllOptions",
                                      {.max_value = 1, .negative_slope = 0.2, .threshold = 0.3}},
                      NamedActivation{"LeakyRelu",
                                      {.kind = Activation::kLeakyRelu, .negative_slope = 0.3}},
                      NamedActivation{"Tanh", {.kind = Activation::kTanh}},
                      NamedActivation{"Sigmoid", {.kind = Activation::kSigmoid}},
                      NamedActivation{"Elu", {.kind = Activation::kElu, .negative_slope = 0.7}},
                      NamedActivation{"Selu", {.kind = Activation::kSelu}},
                      NamedActivation{"Softplus", {.kind = Activation::kSoftplus}},
                      NamedActivation{"Softsign", {.kind = Activation::kSoftsign}},
                      NamedActivation{"Silu", {.kind = Activation::kSilu}},
                      NamedActivation{"Gelu", {.kind = Activation::kGelu}},
                      NamedActivation{"HardSigmoid", {.kind = Activation::kHardSigmoid}}),
    [](const auto& info) { return info.param.name; });

TEST(CpuAgainstReferenceTest, FashionModels) {
  std::mt19937 random(1);
  const auto loss = LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})");
  CompareBackends(FashionMlp(65), loss, 2e-5, random);
  CompareBackends(FashionCnn(), loss, 5e-5, random);
}

}  // namespace
}  // namespace shoal
