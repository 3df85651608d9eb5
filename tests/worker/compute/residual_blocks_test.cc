// The ends of residual blocks, of which backends compute several layers at once.

#include <gtest/gtest.h>

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

#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/cuda/cuda_on_cpu_backend.h"
#include "tests/worker/compute/model_building.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/graph_runner.h"
#include "worker/compute/reference/reference_backend.h"

namespace shoal {
namespace {

const auto kSparse = LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})");

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

class ResidualBlocksTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const absl::Status device = CheckDevice(GetParam());
    if (!device.ok()) GTEST_SKIP() << "No GPU here: " << device.message();
  }
  static std::unique_ptr<GraphRunner> MakeRunner(ComputeDtype type,
                                                 std::unique_ptr<Backend> backend) {
    auto runner = GraphRunner::Create({.model = Blocks(type), .loss = kSparse, .metrics = {}},
                                      std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

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

TEST_P(ResidualBlocksTest, AreComputedAsByTheReference) {
  const auto reference = MakeRunner(ComputeDtype::kFloat32, CreateReferenceBackend());
  const std::vector<float> parameters = Parameters(*reference);
  const RandomBatch data(random_, Blocks(ComputeDtype::kFloat32), *kSparse, 5);
  std::vector<float> expected(parameters.size());
  const auto wanted = reference->Train(data.batch(), 1, parameters, expected, nullptr);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  auto backend = CreateSuiteBackend(GetParam());
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::set<ComputeDtype> types = (*backend)->compute_dtypes();
  for (const ComputeDtype type : types) {
    SCOPED_TRACE(NameOf(type));
    const auto runner = MakeRunner(type, *CreateSuiteBackend(GetParam()));
    std::vector<float> gradients(parameters.size());
    const auto trained = runner->Train(data.batch(), 1, parameters, gradients, nullptr);
    ASSERT_TRUE(trained.ok()) << trained.status();
    const double bound = type == ComputeDtype::kFloat32 ? 1e-4 : 0.1;
    EXPECT_NEAR(trained->loss_sum, wanted->loss_sum, bound);
    double squares = 0, all = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      squares += std::pow(double{gradients[i]} - expected[i], 2);
      all += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LT(std::sqrt(squares / all), bound);
    EXPECT_NEAR(runner->Evaluate(data.batch(), parameters)->loss_sum,
                reference->Evaluate(data.batch(), parameters)->loss_sum, bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ResidualBlocksTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

// Each of the five ends is one step, with the normalization before it; so is the gradient of its
// ReLU, with that of a normalization.
TEST(CudaResidualBlocksTest, TheSumGoesWithTheNormalization) {
  for (const ComputeDtype type :
       {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    SCOPED_TRACE(NameOf(type));
    std::mt19937 random(5);
    std::map<std::string, int> steps;
    const auto runner =
        GraphRunner::Create({.model = Blocks(type),
                             .loss = kSparse,
                             .metrics = {},
                             .on_work_timed = [&](const std::string& work,
                                                  std::chrono::nanoseconds) { ++steps[work]; }},
                            std::make_unique<CudaOnCpuBackend>(std::make_unique<FakeDevice>(1)));
    ASSERT_TRUE(runner.ok()) << runner.status();
    const RandomBatch data(random, Blocks(type), *kSparse, 2);
    const std::vector<float> parameters(RandomFloats(random, (*runner)->layout().size, 0.3f));
    ASSERT_TRUE((*runner)->Predict(data.batch(), parameters, /*training=*/false).ok());
    EXPECT_GT(steps["BatchNormalization"], 0);
    EXPECT_EQ(steps["Add"], 0);
    EXPECT_EQ(steps["Activation"], 0);
    std::vector<float> gradients(parameters.size());
    ASSERT_TRUE((*runner)->Train(data.batch(), 1, parameters, gradients, nullptr).ok());
    EXPECT_GT(steps["BatchNormalizationBackward"], 0);
    EXPECT_EQ(steps["ActivationBackward"], 0);
  }
}

}  // namespace
}  // namespace shoal
