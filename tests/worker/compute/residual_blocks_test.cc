// The ends of residual blocks, of which backends compute several layers at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/compute/backend_suite.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/random_batch.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

// As of ResNet, with a normalization in both branches and with an input that the next block adds
// again; as of MobileNet, without a ReLU; with a ReLU6; and with a frozen normalization without
// anything behind it, before a layer of another type.
Graph Blocks(ComputeDtype type) {
  ModelBuilding model({kBatch, 6, 6, 3});
  model.ComputeIn(type);
  const ValueId input = model.current();
  model.Conv2D(8, {.size = {1, 1}}).BatchNormalization();
  const ValueId normalized = model.current();
  model.From(input).Conv2D(8, {.size = {3, 3}, .padding = Padding::kSame}).BatchNormalization();
  model.Add(normalized).Relu();
  const ValueId first = model.current();
  model.Conv2D(8, {.size = {1, 1}}).BatchNormalization().Add(first).Relu();
  const ValueId second = model.current();
  model.DepthwiseConv2D({.size = {3, 3}, .padding = Padding::kSame}).BatchNormalization();
  model.Add(second);
  const ValueId third = model.current();
  model.Conv2D(8, {.size = {1, 1}}).BatchNormalization().Add(third).Activation({.max_value = 6});
  const ValueId fourth = model.current();
  model.Conv2D(8, {.size = {1, 1}}).BatchNormalization(/*frozen=*/true).Add(fourth);
  return model.ComputeIn(ComputeDtype::kFloat32).GlobalAveragePool2D().Dense(4).Build();
}

// As a share of what is expected.
double Distance(const std::vector<float>& gradients, const std::vector<float>& expected) {
  double squares = 0, all = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    squares += std::pow(double{gradients[i]} - expected[i], 2);
    all += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(squares / all);
}

class ResidualBlocksTest : public BackendSuite {
 protected:
  static std::unique_ptr<GraphRunner> MakeRunner(ComputeDtype type, int64_t micro_batch_size,
                                                 std::unique_ptr<Backend> backend) {
    auto runner = GraphRunner::Create({.model = Blocks(type),
                                       .loss = kSparse,
                                       .metrics = {},
                                       .micro_batch_size = micro_batch_size},
                                      std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  // `micro_batch_size`: ModelRunner::Options', of a batch of 5.
  void ExpectTheReferences(int64_t micro_batch_size);

  // No moving average is negative: some are variances.
  std::vector<float> Parameters(const GraphRunner& runner) {
    std::vector<float> parameters = RandomFloats(random_, runner.layout().size, 0.5f);
    const Graph model = Blocks(ComputeDtype::kFloat32);
    for (size_t i = 0; i < model.variables().size(); ++i) {
      const auto& [offset, size] = runner.layout().variables[i];
      if (model.variables()[i].rule == UpdateRule::kOptimizer) continue;
      for (float& value : std::span(parameters).subspan(offset, size)) value = std::abs(value);
    }
    return parameters;
  }

  std::mt19937 random_{5};
};

// In each type, within what that rounds.
void ResidualBlocksTest::ExpectTheReferences(int64_t micro_batch_size) {
  const auto reference =
      MakeRunner(ComputeDtype::kFloat32, micro_batch_size, CreateReferenceBackend());
  const std::vector<float> parameters = Parameters(*reference);
  const RandomBatch data(random_, Blocks(ComputeDtype::kFloat32), *kSparse, 5);
  std::vector<float> expected(parameters.size());
  const auto wanted = reference->Train(data.batch(), 1, parameters, expected, nullptr);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  auto backend = CreateSuiteBackend(GetParam());
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::set<ComputeDtype> types = ComputeDtypesOf(**backend);
  for (const ComputeDtype type : types) {
    SCOPED_TRACE(NameOf(type));
    const auto runner = MakeRunner(type, micro_batch_size, *CreateSuiteBackend(GetParam()));
    std::vector<float> gradients(parameters.size());
    const auto trained = runner->Train(data.batch(), 1, parameters, gradients, nullptr);
    ASSERT_TRUE(trained.ok()) << trained.status();
    const double bound = type == ComputeDtype::kFloat32 ? 1e-4 : 0.1;
    EXPECT_NEAR(trained->loss_sum, wanted->loss_sum, bound);
    EXPECT_LT(Distance(gradients, expected), bound);
    EXPECT_NEAR(runner->Evaluate(data.batch(), parameters)->loss_sum,
                reference->Evaluate(data.batch(), parameters)->loss_sum, bound);
  }
}

TEST_P(ResidualBlocksTest, AreComputedAsByTheReference) { ExpectTheReferences(0); }

TEST_P(ResidualBlocksTest, AreComputedInPartsAsByTheReference) { ExpectTheReferences(3); }

INSTANTIATE_TEST_SUITE_P(Backends, ResidualBlocksTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

// Counts the steps of a program by the ops that they are of.
std::unique_ptr<GraphRunner> CountingRunner(Graph model, std::map<std::string, int>& steps) {
  auto runner = GraphRunner::Create(
      {.model = std::move(model),
       .loss = kSparse,
       .metrics = {},
       .on_work_timed = [&](const std::string& work, std::chrono::nanoseconds) { ++steps[work]; }},
      std::make_unique<CudaOnCpuBackend>(std::make_unique<FakeDevice>(1)));
  EXPECT_TRUE(runner.ok()) << runner.status();
  return *std::move(runner);
}

// Each of the five ends is one step, with the normalization before it; so is the gradient of its
// ReLU, with that of a normalization, and the sum of what two layers leave for that.
TEST(CudaResidualBlocksTest, TheSumGoesWithTheNormalization) {
  for (const ComputeDtype type :
       {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    SCOPED_TRACE(NameOf(type));
    std::mt19937 random(5);
    std::map<std::string, int> steps;
    const auto runner = CountingRunner(Blocks(type), steps);
    const RandomBatch data(random, Blocks(type), *kSparse, 2);
    const std::vector<float> parameters(RandomFloats(random, runner->layout().size, 0.3f));
    ASSERT_TRUE(runner->Predict(data.batch(), parameters, /*training=*/false).ok());
    EXPECT_GT(steps["BatchNormalization"], 0);
    EXPECT_EQ(steps["Add"], 0);
    EXPECT_EQ(steps["Activation"], 0);
    std::vector<float> gradients(parameters.size());
    ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
    EXPECT_GT(steps["BatchNormalizationBackward"], 0);
    EXPECT_EQ(steps["ActivationBackward"], 0);
    EXPECT_EQ(steps["Add"], 0);
  }
}

// The four biases before a normalization by the batch's mean have no gradient, so that nothing is
// summed up for them; that before a frozen one has, and the last layer's.
TEST(CudaResidualBlocksTest, ABiasBeforeANormalizationHasNoGradient) {
  for (const ComputeDtype type :
       {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    SCOPED_TRACE(NameOf(type));
    const Graph model = Blocks(type);
    std::mt19937 random(5);
    std::map<std::string, int> steps;
    const auto runner = CountingRunner(model, steps);
    const RandomBatch data(random, model, *kSparse, 5);
    const std::vector<float> parameters = NonNegativeParameters(random, *runner);
    std::vector<float> gradients(parameters.size());
    ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
    EXPECT_EQ(steps["BiasBackward"], 4) << "two for each";
    int zeros = 0, others = 0;
    for (size_t i = 0; i < model.variables().size(); ++i) {
      if (!model.variables()[i].name.ends_with("/bias")) continue;
      const auto& [offset, size] = runner->layout().variables[i];
      const auto of_bias = std::span(gradients).subspan(offset, size);
      const bool zero = std::ranges::count(of_bias, 0.0f) == static_cast<int64_t>(size);
      ++(zero ? zeros : others);
    }
    EXPECT_EQ(zeros, 4);
    EXPECT_EQ(others, 2);
  }
}

// The backward pass transposes no filter that the forward one has, and computes no factor of a
// normalization anew: three gradients of a convolution's input, six of a normalization.
TEST(CudaResidualBlocksTest, TheBackwardPassReadsWhatTheForwardOneHasMade) {
  const Graph model = Blocks(ComputeDtype::kFloat32);
  std::mt19937 random(5);
  std::map<std::string, int> steps;
  const auto runner = CountingRunner(model, steps);
  const RandomBatch data(random, model, *kSparse, 2);
  const std::vector<float> parameters(RandomFloats(random, runner->layout().size, 0.3f));
  std::vector<float> gradients(parameters.size());
  ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
  EXPECT_EQ(steps["Conv2D"], 2 * 5) << "a filter and a convolution";
  EXPECT_EQ(steps["Conv2DBackwardData"], 3);
  EXPECT_EQ(steps["BatchNormalizationBackward"], 6 * 3) << "sums, coefficients and the gradient";
}

// The sum of two gradients, which is of the type of the layer that reads `block` first, goes with
// the normalization only if all that are computed together are of its type.
TEST(CudaResidualBlocksTest, AGradientsSumOfAnotherTypeIsAStep) {
  constexpr ComputeDtype kFloat32 = ComputeDtype::kFloat32, kBfloat16 = ComputeDtype::kBfloat16;
  struct Types {
    ComputeDtype relu, reader;
    bool is_step;
  };
  for (const Types& types : {Types{kBfloat16, kBfloat16, false}, Types{kBfloat16, kFloat32, true},
                             Types{kFloat32, kBfloat16, true}}) {
    SCOPED_TRACE(testing::Message() << NameOf(types.relu) << ", " << NameOf(types.reader));
    ModelBuilding model({kBatch, 6, 6, 8});
    const ValueId shortcut = model.current();
    model.ComputeIn(kBfloat16).Conv2D(8, {.size = {1, 1}}).BatchNormalization().Add(shortcut);
    model.ComputeIn(types.relu).Relu();
    const ValueId block = model.current();
    model.ComputeIn(types.reader).Conv2D(8, {.size = {1, 1}}).Add(block);
    const Graph graph = model.ComputeIn(kFloat32).GlobalAveragePool2D().Dense(4).Build();

    std::map<std::string, int> steps;
    const auto runner = CountingRunner(graph, steps);
    std::mt19937 random(5);
    const RandomBatch data(random, graph, *kSparse, 3);
    const std::vector<float> parameters(RandomFloats(random, runner->layout().size, 0.3f));
    ASSERT_TRUE(runner->Evaluate(data.batch(), parameters).ok());
    const int before = steps["Add"];
    std::vector<float> gradients(parameters.size()), expected(parameters.size());
    ASSERT_TRUE(runner->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
    // The forward pass has the sum at the end of the second block, as in evaluation.
    EXPECT_EQ(steps["Add"] - 2 * before, types.is_step ? 1 : 0);

    auto reference = GraphRunner::Create({.model = graph, .loss = kSparse, .metrics = {}},
                                         CreateReferenceBackend());
    ASSERT_TRUE(reference.ok()) << reference.status();
    ASSERT_TRUE((*reference)->Train(data.batch(), 1, parameters, expected, nullptr).ok());
    EXPECT_LT(Distance(gradients, expected), 0.1);
  }
}

}  // namespace
}  // namespace shoal
