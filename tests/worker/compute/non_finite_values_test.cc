// Values that are not finite, on every backend: it computes a number of the class (not-a-number,
// an infinity, finite) that the reference does.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/ops/activation.h"
#include "tests/worker/compute/backend_suite.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/number_class.h"
#include "worker/compute/reference/reference_backend.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

// Values that formulas turn into others, and neighbours for vectors to contain.
const std::vector<float> kValues = {kInfinity, -kInfinity, kNotANumber, -kNotANumber, 3e38f, -3e38f,
                                    1e20f,     -1e20f,     kDenormal,   -kDenormal,   0,     -0.0f,
                                    1,         -1,         100,         -100};

class NonFiniteValuesTest : public BackendSuite {
 protected:
  static std::unique_ptr<GraphRunner> MakeRunner(Graph model, std::unique_ptr<Backend> backend) {
    auto runner = GraphRunner::Create({.model = std::move(model), .loss = kSparse, .metrics = {}},
                                      std::move(backend));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }
  std::unique_ptr<GraphRunner> MakeRunner(Graph model) {
    auto backend = CreateSuiteBackend(GetParam());
    EXPECT_TRUE(backend.ok()) << backend.status();
    return MakeRunner(std::move(model), *std::move(backend));
  }
  static std::vector<float> Predict(GraphRunner& runner, const std::vector<float>& input,
                                    int64_t examples) {
    const std::vector<float> parameters(runner.layout().size, 1.0f);
    const auto predicted =
        runner.Predict({.examples = examples, .inputs = {input}}, parameters, false);
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    return predicted.ok() ? *predicted : std::vector<float>();
  }
  void ExpectTheReferencesClasses(const Graph& model, const std::vector<float>& input,
                                  int64_t examples, const std::string& what) {
    const auto expected = Predict(*MakeRunner(model, CreateReferenceBackend()), input, examples);
    const auto computed = Predict(*MakeRunner(model), input, examples);
    ASSERT_EQ(computed.size(), expected.size());
    for (size_t i = 0; i < computed.size(); ++i) {
      EXPECT_EQ(ClassOf(computed[i]), ClassOf(expected[i]))
          << what << ", element " << i << ": " << computed[i] << " for " << expected[i];
    }
  }
};

TEST_P(NonFiniteValuesTest, AReluKeepsNotANumberAndCutsOffMinusInfinity) {
  ModelBuilding model({kBatch, 4});
  const auto runner = MakeRunner(model.Relu().Build());
  const std::vector<float> y = Predict(*runner, {-kInfinity, kInfinity, kNotANumber, -1}, 1);
  ASSERT_EQ(y.size(), 4u);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 0);
}

TEST_P(NonFiniteValuesTest, EachActivationGivesWhatTheReferenceDoes) {
  using Kind = ActivationAttributes::Kind;
  for (int kind = 0; kind <= static_cast<int>(Kind::kSparsePlus); ++kind) {
    // Its x^2 overflows in float32, as Keras's does, and not in the reference's double.
    if (static_cast<Kind>(kind) == Kind::kSquareplus) continue;
    ModelBuilding model({kBatch, static_cast<int64_t>(kValues.size())});
    model.Activation({.kind = static_cast<Kind>(kind), .negative_slope = 0.25, .threshold = 0.5});
    ExpectTheReferencesClasses(model.Build(), kValues, 1, absl::StrCat("activation ", kind));
  }
}

TEST_P(NonFiniteValuesTest, AFusedReluGivesWhatTheReferenceDoes) {
  for (const double max_value : {-1.0, 6.0}) {
    ModelBuilding dense({kBatch, 1});
    dense.Dense(2).Activation({.max_value = max_value});
    ExpectTheReferencesClasses(dense.Build(), kValues, static_cast<int64_t>(kValues.size()),
                               "Dense");
    ModelBuilding convolution({kBatch, 1, 1, 1});
    convolution.Conv2D(8, {}).Activation({.max_value = max_value});
    ExpectTheReferencesClasses(convolution.Build(), kValues, static_cast<int64_t>(kValues.size()),
                               "Conv2D");
    ModelBuilding normalization({kBatch, 1});
    normalization.BatchNormalization().Activation({.max_value = max_value});
    ExpectTheReferencesClasses(normalization.Build(), kValues, static_cast<int64_t>(kValues.size()),
                               "BatchNormalization");
    ModelBuilding sum({kBatch, 2});
    const ValueId x = sum.current();
    sum.Dense(2).Add(x).Activation({.max_value = max_value});
    ExpectTheReferencesClasses(sum.Build(), kValues, static_cast<int64_t>(kValues.size()) / 2,
                               "Add");
  }
}

// One row for each value, beside finite ones.
TEST_P(NonFiniteValuesTest, ASoftmaxGivesWhatTheReferenceDoes) {
  constexpr int64_t kColumns = 19;  // a vector and more
  ModelBuilding model({kBatch, kColumns});
  std::vector<float> input(kValues.size() * kColumns, 0.5f);
  for (size_t row = 0; row < kValues.size(); ++row)
    input[row * kColumns + row % kColumns] = kValues[row];
  ExpectTheReferencesClasses(model.Softmax().Build(), input, static_cast<int64_t>(kValues.size()),
                             "Softmax");
}

// A class that a model excludes.
TEST_P(NonFiniteValuesTest, ALogitOfMinusInfinityOfAnotherClassCostsNothing) {
  ModelBuilding logits({kBatch, 3});
  const auto of_logits = MakeRunner(logits.Rescale({1}, {0}).Build());
  const std::vector<float> input = {0, -kInfinity, 0}, target = {0};
  const auto sums = of_logits->Evaluate({.examples = 1, .inputs = {input}, .target = target}, {});
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_NEAR(sums->loss_sum, std::log(2), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Backends, NonFiniteValuesTest, ::testing::ValuesIn(SuiteBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace shoal
