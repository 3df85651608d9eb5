// Every op, by itself, with random shapes: the reference kernels against finite differences, in
// double, and every backend against them. Then blocks of ops, every backend against the reference:
// what an op leaves, another one reads in the layout that it needs. A backend that registers in
// backends.cc is tested; an op without a case in op_cases.cc fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/case_result.h"
#include "tests/worker/compute/double_interpreter.h"
#include "tests/worker/compute/expect_near.h"
#include "tests/worker/compute/jumps.h"
#include "tests/worker/compute/op_case.h"
#include "tests/worker/compute/suite_backends.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/registry/backends.h"

namespace shoal {
namespace {

// Draws of each case in a run of the suite.
constexpr int kDraws = 8;

class OpGradientTest : public ::testing::TestWithParam<NamedOpCase> {};

TEST_P(OpGradientTest, EqualsFiniteDifferences) {
  const uint64_t first_seed = TestSeed();
  for (uint64_t seed = first_seed; seed < first_seed + kDraws; ++seed) {
    SCOPED_TRACE(SeedText(seed));
    OpCase test_case(seed, /*small=*/true);
    GetParam().build(test_case);
    const TrainingGraph training = test_case.BuildTraining();
    DoubleInterpreter interpreter(training);
    SetValues(test_case, interpreter);
    interpreter.Train();
    std::vector<std::vector<double>> gradients;
    for (const ValueId gradient : training.pushed_values) {
      ASSERT_NE(gradient, kNoValue);
      gradients.push_back(interpreter.value(gradient));
    }
    std::mt19937_64 random(seed);
    for (size_t v = 0; v < gradients.size(); ++v) {
      if (training.graph.variables()[v].rule != UpdateRule::kOptimizer) continue;
      std::vector<double>& values = interpreter.variable(static_cast<int>(v));
      // Some elements of each: this takes two runs of the model an element.
      for (int draw = 0; draw < 20; ++draw) {
        constexpr double kStep = 1e-6;
        const size_t i = random() % values.size();
        const double original = values[i];
        values[i] = original + kStep;
        const double above = interpreter.Loss();
        values[i] = original - kStep;
        const double below = interpreter.Loss();
        values[i] = original;
        const double expected = (above - below) / (2 * kStep);
        ASSERT_NEAR(gradients[v][i], expected, 1e-7 + 2e-5 * std::abs(expected))
            << training.graph.variables()[v].name << "[" << i << "]";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpGradientTest, ::testing::ValuesIn(OpCases()),
                         [](const auto& info) { return info.param.name; });

class OpConformanceTest : public ::testing::TestWithParam<std::tuple<std::string, NamedOpCase>> {
 protected:
  struct Result {
    std::string what;
    std::vector<float> computed;
    std::vector<float> expected;
  };
  using Compare = std::function<void(const std::vector<Result>& results)>;
  void ForEachResult(ComputeDtype type, uint64_t first_seed, const Compare& compare);
};

bool NeedsAny(const std::set<std::string>& types, const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return types.contains(node.op->type()); });
}

std::vector<float> ToFloat(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// Draws the case and has the backend compute it in each mode, for `compare`, which is given what it
// computed, or several of that, and what the reference did.
void OpConformanceTest::ForEachResult(ComputeDtype type, uint64_t first_seed,
                                      const Compare& compare) {
  const auto& [backend_name, named] = GetParam();
  const absl::Status device = CheckDevice(backend_name);
  if (!device.ok()) GTEST_SKIP() << "No GPU here: " << device.message();
  const auto backend = CreateSuiteBackend(backend_name);
  ASSERT_TRUE(backend.ok()) << backend.status();
  const std::set<std::string> missing = MissingOps(backend_name);
  for (uint64_t seed = first_seed; seed < first_seed + kDraws; ++seed) {
    SCOPED_TRACE(SeedText(seed));
    OpCase test_case(seed, /*small=*/false, type);
    named.build(test_case);
    const TrainingGraph training = test_case.BuildTraining();
    const absl::Status kernels = CheckKernels(**backend, training.graph);
    if (NeedsAny(missing, training.graph)) {
      ASSERT_EQ(kernels.code(), absl::StatusCode::kUnimplemented) << kernels;
      GTEST_SKIP() << kernels.message();
    }
    ASSERT_TRUE(kernels.ok()) << kernels;
    DoubleInterpreter interpreter(training);
    SetValues(test_case, interpreter);
    (*backend)->UseThreads(1 + static_cast<int>(seed % 2));
    for (const PlanMode mode : {PlanMode::kPredict, PlanMode::kPredictTraining, PlanMode::kTrain}) {
      const auto computed = ComputeCase(test_case, training, mode, **backend);
      ASSERT_TRUE(computed.ok()) << computed.status();
      interpreter.Predict(/*training=*/mode != PlanMode::kPredict);
      compare(
          {{"prediction", computed->prediction, ToFloat(interpreter.value(training.prediction))}});
      if (mode != PlanMode::kTrain) continue;
      interpreter.Train();
      if (named.jumps_inside && IsNearAJump(training, interpreter)) continue;
      std::vector<Result> gradients;
      for (size_t v = 0; v < computed->gradients.size(); ++v) {
        gradients.push_back({"gradient of " + training.graph.variables()[v].name,
                             computed->gradients[v],
                             ToFloat(interpreter.value(training.pushed_values[v]))});
      }
      compare(gradients);
    }
  }
}

TEST_P(OpConformanceTest, ComputesWhatTheReferenceDoes) {
  const double bound = std::get<NamedOpCase>(GetParam()).bound;
  ForEachResult(ComputeDtype::kFloat32, TestSeed(), [&](const std::vector<Result>& results) {
    double largest = 0;
    for (const Result& result : results) largest = std::max(largest, Largest(result.expected));
    const double least = LeastGradient(largest, bound);
    for (const auto& [what, computed, expected] : results)
      ExpectNear(computed, expected, bound, what == "prediction" ? 1e-6 : least, what);
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, OpConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(SuiteBackends()),
                                            ::testing::ValuesIn(OpCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

INSTANTIATE_TEST_SUITE_P(Fused, OpConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(SuiteBackends()),
                                            ::testing::ValuesIn(FusedOpCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

INSTANTIATE_TEST_SUITE_P(Blocks, OpConformanceTest,
                         ::testing::Combine(::testing::ValuesIn(SuiteBackends()),
                                            ::testing::ValuesIn(OpBlockCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// Under mixed_bfloat16, of which the numbers have 8 bits, and mixed_float16, of which they have 11:
// what goes in has no more, and each tensor on the way is rounded to as many.
class OpReducedPrecisionTest : public OpConformanceTest {
 protected:
  // Compares all numbers together, in the same draws each time: of some sums little is left but
  // rounding errors.
  void ExpectNearly(ComputeDtype type, double bound) {
    const absl::Status device = CheckDevice(std::get<0>(GetParam()));
    if (!device.ok()) GTEST_SKIP() << "No GPU here: " << device.message();
    const auto backend = CreateSuiteBackend(std::get<0>(GetParam()));
    ASSERT_TRUE(backend.ok()) << backend.status();
    if (!ComputeDtypesOf(**backend).contains(type))
      GTEST_SKIP() << "No " << NameOf(type) << " here";
    ForEachResult(type, /*first_seed=*/1, [bound](const std::vector<Result>& results) {
      double squares = 0, all = 0;
      for (const auto& [what, computed, expected] : results) {
        for (size_t i = 0; i < expected.size(); ++i) {
          squares += std::pow(double{computed[i]} - expected[i], 2);
          all += std::pow(expected[i], 2);
        }
      }
      EXPECT_LE(std::sqrt(squares), bound * std::sqrt(all)) << results.front().what;
    });
  }
};

class OpBfloat16Test : public OpReducedPrecisionTest {};
TEST_P(OpBfloat16Test, ComputesNearlyWhatTheReferenceDoes) {
  ExpectNearly(ComputeDtype::kBfloat16, 0.03);
}

class OpFloat16Test : public OpReducedPrecisionTest {};
TEST_P(OpFloat16Test, ComputesNearlyWhatTheReferenceDoes) {
  ExpectNearly(ComputeDtype::kFloat16, 0.005);
}

// Those whose kernels know these types, without jumps (Relu, MaxPool2D): numbers as coarse as these
// meet them.
std::vector<NamedOpCase> ReducedPrecisionCases() {
  static const std::set<std::string> names = {"Add",
                                              "AddOfTwo",
                                              "AveragePool2D",
                                              "BatchNormalization",
                                              "BroadcastLike",
                                              "Concatenate",
                                              "Conv2D",
                                              "TransposedConv2D",
                                              "Crop",
                                              "Dense",
                                              "DepthwiseConv2D",
                                              "Dropout",
                                              "Gelu",
                                              "GlobalAveragePool2D",
                                              "Glu",
                                              "HardSilu",
                                              "LayerNormalization",
                                              "LeakyRelu",
                                              "LogSigmoid",
                                              "LogSoftmax",
                                              "Mish",
                                              "Multiply",
                                              "Pad",
                                              "Rescale",
                                              "Reshape",
                                              "ResizeBilinearly",
                                              "ResizeToNearest",
                                              "Selu",
                                              "Sigmoid",
                                              "Silu",
                                              "Softmax",
                                              "Softplus",
                                              "Softsign",
                                              "Subtract",
                                              "Tanh",
                                              "TanhShrink"};
  std::vector<NamedOpCase> cases = OpCases();
  std::erase_if(cases, [](const NamedOpCase& named) { return !names.contains(named.name); });
  return cases;
}

// Those that compute in bfloat16, some CPUs among them.
std::vector<std::string> Bfloat16Backends() {
  std::vector<std::string> names = ReducedPrecisionBackends();
  for (const std::string& name : TestedBackends()) {
    if (name == "cpu") names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpBfloat16Test,
                         ::testing::Combine(::testing::ValuesIn(Bfloat16Backends()),
                                            ::testing::ValuesIn(ReducedPrecisionCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

INSTANTIATE_TEST_SUITE_P(Ops, OpFloat16Test,
                         ::testing::Combine(::testing::ValuesIn(ReducedPrecisionBackends()),
                                            ::testing::ValuesIn(ReducedPrecisionCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// Ops of several layouts and types after each other. Few values are so near a jump that rounding
// puts them on its other side.
class OpBlocksBfloat16Test : public OpReducedPrecisionTest {};
TEST_P(OpBlocksBfloat16Test, ComputesNearlyWhatTheReferenceDoes) {
  ExpectNearly(ComputeDtype::kBfloat16, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Blocks, OpBlocksBfloat16Test,
                         ::testing::Combine(::testing::ValuesIn(Bfloat16Backends()),
                                            ::testing::ValuesIn(OpBlockCases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// The ops that a backend computes for the case, by Op::type(): those of the training graph, and
// those that the passes make of them.
std::set<std::string> OpsOf(const NamedOpCase& named, uint64_t seed, const Backend& backend) {
  OpCase test_case(seed, /*small=*/true);
  named.build(test_case);
  const TrainingGraph training = test_case.BuildTraining();
  std::set<std::string> types;
  for (const Node& node : training.graph.nodes()) types.insert(node.op->type());
  for (const PlanMode mode : {PlanMode::kPredict, PlanMode::kTrain}) {
    Plan plan(training, mode, /*examples=*/1);
    RunPasses([&](const Node& node) { return backend.Supports(node); }, plan);
    for (const Node& node : plan.nodes()) types.insert(node.op->type());
  }
  return types;
}

// A case reaches an op in each second draw at least: 64 draws leave nothing to luck.
TEST(OpCasesTest, EveryOpOfEveryBackendHasOne) {
  constexpr int kManyDraws = 64;
  const uint64_t first_seed = TestSeed();
  SCOPED_TRACE(SeedText(first_seed));
  for (const std::string& name : SuiteBackends()) {
    if (!CheckDevice(name).ok()) continue;
    const auto backend = CreateSuiteBackend(name);
    ASSERT_TRUE(backend.ok()) << backend.status();
    std::set<std::string> untested = KernelsOf(name);
    for (const std::string& type : MissingOps(name)) {
      EXPECT_FALSE(untested.contains(type)) << type << " has a kernel of " << name;
    }
    for (uint64_t draw = 0; draw < kManyDraws && !untested.empty(); ++draw) {
      for (const auto& cases : {OpCases(), FusedOpCases()}) {
        for (const NamedOpCase& named : cases) {
          for (const std::string& type : OpsOf(named, first_seed + draw, **backend)) {
            untested.erase(type);
          }
        }
      }
    }
    for (const std::string& type : untested) {
      ADD_FAILURE() << "the " << name << " backend has a kernel for " << type
                    << ", which no case of tests/worker/compute/op_cases.cc reaches";
    }
  }
}

}  // namespace
}  // namespace shoal
