// Every op with a few values that are not finite: every backend against the reference backend, not
// the double interpreter, so that the values between the ops are float32 on both. Rows and formulas
// with chosen values: non_finite_values_test.cc.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/case_result.h"
#include "tests/worker/compute/double_interpreter.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/jumps.h"
#include "tests/worker/compute/number_class.h"
#include "tests/worker/compute/op_case.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/reference/reference_backend.h"

namespace shoal {
namespace {

// Draws of each case in a run of the suite.
constexpr int kDraws = 8;

// How a backend's results may differ from the reference's.
enum class Difference {
  kNanForOther,  // not-a-number in place of an infinity or a finite number
  kGradients,    // other gradients
  kAll,          // other numbers everywhere
};
struct Exemption {
  Difference difference;
  std::set<std::string> backends;
  std::set<std::string> names;  // of cases, and of ops: for the cases that need such an op
  const char* reason;
};
const std::vector<Exemption>& Exemptions() {
  static const auto& exemptions = *new std::vector<Exemption>{
      {Difference::kAll,
       {"cpu"},
       {"MaxPool2D", "LargeMaxPool2D", "MaxPool2DBackwardRelu"},
       "oneDNN takes the largest of the numbers in a window, -3.4e38 if there is none "
       "(docs/keras-parity.md)"},
      {Difference::kNanForOther,
       {"cpu", "cuda"},
       {"Conv2D", "Conv2DBackwardData", "DepthwiseConv2D"},
       "oneDNN and cuDNN may multiply zeros around an image, or of a filled-up block, with "
       "infinite "
       "numbers, which the reference leaves out"},
      {Difference::kNanForOther,
       {"cuda_on_cpu"},
       {"DepthwiseConv2D"},
       "DepthwiseLinesKernel multiplies the zeros around an image with infinite numbers"},
      {Difference::kNanForOther,
       {"cuda", "cuda_on_cpu"},
       {"Sparsemax"},
       "not-a-number has no place in the order of a row, so it may be in the row's threshold or "
       "not"},
      {Difference::kNanForOther,
       {"cpu", "cuda", "cuda_on_cpu"},
       {"BatchNormalization", "BatchNormalizationRelu", "BatchNormalizationAdd",
        "BatchNormalizationAddRelu"},
       "the mean of a batch is a first mean and the mean distance from it: of infinities a "
       "difference of infinities"},
      {Difference::kNanForOther,
       {"cpu", "cuda", "cuda_on_cpu"},
       {"FrozenBatchNormalization"},
       "the gradient has the terms of mean and variance, with factors of 0: 0 * infinity"},
      {Difference::kNanForOther,
       {"cpu", "cuda", "cuda_on_cpu"},
       {"Elu", "Selu"},
       "the derivative at minus infinity is 0, but a sum of y and alpha in the reference, which "
       "rounding leaves near 0: 0 * infinity"},
      {Difference::kGradients,
       {"cuda", "cuda_on_cpu"},
       {"BatchNormalizationRelu", "BatchNormalizationAddRelu", "Conv2DNormalizationRelu",
        "DepthwiseConv2DNormalizationRelu"},
       "where a ReLU cuts off, the gradient of a normalization is 0 whatever comes from behind "
       "(Clamp::Passed); the reference multiplies by 0. TensorFlow does one on a GPU, the other on "
       "a CPU"},
  };
  return exemptions;
}
// Returns the exemption of the backend in this case, whose ops are those of `graph`; null: none.
const Exemption* Find(Difference difference, const std::string& backend, const std::string& op_case,
                      const Graph& graph) {
  for (const Exemption& exemption : Exemptions()) {
    if (exemption.difference != difference || !exemption.backends.contains(backend)) continue;
    const auto is_named = [&](const Node& node) {
      return exemption.names.contains(node.op->type());
    };
    if (exemption.names.contains(op_case) ||
        std::any_of(graph.nodes().begin(), graph.nodes().end(), is_named))
      return &exemption;
  }
  return nullptr;
}

// A tensor that a backend computed, and the reference's.
struct Compared {
  std::string what;
  std::vector<float> computed;
  std::vector<float> expected;
};

// Expects the class of each number, and sets to 0 what is not finite. Adds the finite ones to
// `finite`.
void ExpectSameClasses(Compared& tensor, bool nan_for_other, int64_t& finite) {
  ASSERT_EQ(tensor.computed.size(), tensor.expected.size()) << tensor.what;
  for (size_t i = 0; i < tensor.expected.size(); ++i) {
    float &computed = tensor.computed[i], &expected = tensor.expected[i];
    if (!(nan_for_other && std::isnan(computed))) {
      ASSERT_EQ(ClassOf(computed), ClassOf(expected))
          << tensor.what << "[" << i << "]: " << computed << " for " << expected;
    }
    finite += std::isfinite(computed);
    if (!std::isfinite(computed)) computed = expected = 0;
  }
}

class NonFiniteOpsTest : public ::testing::TestWithParam<std::tuple<std::string, NamedOpCase>> {
 protected:
  const Exemption* FindExemption(Difference difference, const Graph& graph) const {
    const auto& [backend, named] = GetParam();
    return Find(difference, backend, named.name, graph);
  }
  void CompareResults(const CaseResult& computed, const CaseResult& expected, bool nan_for_other,
                      bool with_gradients);

  int64_t finite_ = 0;  // numbers that were compared and finite
};

void NonFiniteOpsTest::CompareResults(const CaseResult& computed, const CaseResult& expected,
                                      bool nan_for_other, bool with_gradients) {
  const double bound = std::get<NamedOpCase>(GetParam()).bound;
  Compared prediction = {"prediction", computed.prediction, expected.prediction};
  ASSERT_NO_FATAL_FAILURE(ExpectSameClasses(prediction, nan_for_other, finite_));
  ExpectNear(prediction.computed, prediction.expected, bound, 1e-6, prediction.what);
  Compared loss = {
      "loss", {static_cast<float>(computed.loss_sum)}, {static_cast<float>(expected.loss_sum)}};
  ASSERT_NO_FATAL_FAILURE(ExpectSameClasses(loss, nan_for_other, finite_));
  ExpectNear(loss.computed, loss.expected, bound, 1, loss.what);
  if (!with_gradients) return;
  std::vector<Compared> gradients;
  double largest = 0;
  for (size_t v = 0; v < expected.gradients.size(); ++v) {
    gradients.push_back(
        {absl::StrCat("gradient of variable ", v), computed.gradients[v], expected.gradients[v]});
    ASSERT_NO_FATAL_FAILURE(ExpectSameClasses(gradients.back(), nan_for_other, finite_));
    largest = std::max(largest, Largest(gradients.back().expected));
  }
  for (const auto& [what, actual, wanted] : gradients)
    ExpectNear(actual, wanted, bound, LeastGradient(largest, bound), what);
}

TEST_P(NonFiniteOpsTest, GivesWhatTheReferenceDoes) {
  const auto& [backend_name, named] = GetParam();
  const absl::Status device = CheckDevice(backend_name);
  if (!device.ok()) GTEST_SKIP() << "No GPU here: " << device.message();
  const Exemption* const of_all = FindExemption(Difference::kAll, Graph());
  if (of_all != nullptr) GTEST_SKIP() << of_all->reason;
  const auto backend = CreateSuiteBackend(backend_name);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::unique_ptr<Backend> reference = CreateReferenceBackend();
  // The same draws each time: what libraries make of infinities differs between their versions and
  // instruction sets, in rare draws.
  const uint64_t first_seed = TestSeedOrOne();
  for (uint64_t seed = first_seed; seed < first_seed + kDraws; ++seed) {
    SCOPED_TRACE(SeedText(seed));
    OpCase test_case(seed, /*small=*/false);
    named.build(test_case);
    const TrainingGraph training = test_case.BuildTraining();
    SCOPED_TRACE(test_case.PutNonFinite(1 + static_cast<int>(seed % 3)));
    (*backend)->UseThreads(1 + static_cast<int>(seed % 2));
    for (const PlanMode mode : {PlanMode::kPredict, PlanMode::kTrain}) {
      const auto expected = ComputeCase(test_case, training, mode, *reference);
      const auto computed = ComputeCase(test_case, training, mode, **backend);
      ASSERT_TRUE(expected.ok()) << expected.status();
      ASSERT_TRUE(computed.ok()) << computed.status();
      const bool nan_for_other = FindExemption(Difference::kNanForOther, training.graph) != nullptr;
      bool with_gradients = mode == PlanMode::kTrain &&
                            FindExemption(Difference::kGradients, training.graph) == nullptr;
      if (with_gradients && named.jumps_inside) {
        DoubleInterpreter interpreter(training);
        SetValues(test_case, interpreter);
        interpreter.Predict(/*training=*/true);
        with_gradients = !IsNearAJump(training, interpreter);
      }
      SCOPED_TRACE(mode == PlanMode::kTrain ? "in training" : "in prediction");
      ASSERT_NO_FATAL_FAILURE(CompareResults(*computed, *expected, nan_for_other, with_gradients));
    }
  }
  EXPECT_GT(finite_, 0);
}

// The suite's backends without the reference itself.
std::vector<std::string> OtherBackends() {
  std::vector<std::string> names = SuiteBackends();
  std::erase(names, "reference");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, NonFiniteOpsTest,
                         ::testing::Combine(::testing::ValuesIn(OtherBackends()),
                                            ::testing::ValuesIn(OpCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

INSTANTIATE_TEST_SUITE_P(Fused, NonFiniteOpsTest,
                         ::testing::Combine(::testing::ValuesIn(OtherBackends()),
                                            ::testing::ValuesIn(FusedOpCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// A name that no case, op or backend has would exempt nothing, unnoticed.
TEST(NonFiniteExemptionsTest, NameBackendsCasesAndOps) {
  std::set<std::string> names = KernelsOf("reference");
  for (const NamedOpCase& named : OpCases()) names.insert(named.name);
  for (const NamedOpCase& named : FusedOpCases()) names.insert(named.name);
  const std::set<std::string> backends = {"cpu", "fake_device", "cuda_on_cpu", "cuda"};
  for (const Exemption& exemption : Exemptions()) {
    for (const std::string& name : exemption.names) EXPECT_TRUE(names.contains(name)) << name;
    for (const std::string& name : exemption.backends) EXPECT_TRUE(backends.contains(name)) << name;
  }
}

}  // namespace
}  // namespace shoal
