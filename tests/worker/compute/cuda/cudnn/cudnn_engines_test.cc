// Engines and plans of cuDNN for convolutions, as it makes them for a GPU that is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/cuda/cudnn/described_gpu.h"
#include "worker/compute/cuda/cudnn/convolution_planner.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Pass = ConvolutionGraph::Pass;

constexpr Pass kPasses[] = {Pass::kForward, Pass::kBackwardData, Pass::kBackwardFilter};
const NodeName kNode = {.op = "Conv2D", .layer = "conv"};

// A convolution over `x` with a window of kernel[0] x kernel[1].
ConvolutionGraph Describe(Pass pass, Window window, const Shape& x, const Shape& kernel,
                          ComputeDtype type,
                          ConvolutionEpilogue ending = ConvolutionEpilogue::kNone) {
  window.size = {kernel[0], kernel[1]};
  Shape y = window.OutputShape(x).value();
  y[3] = kernel[3];
  return DescribeConvolution(pass, window, {.x = x, .kernel = kernel, .y = y}, type, ending);
}

// Of a layer of ResNet-50, with unequal padding.
ConvolutionGraph Layer(Pass pass, ComputeDtype type = ComputeDtype::kBfloat16,
                       ConvolutionEpilogue ending = ConvolutionEpilogue::kNone) {
  return Describe(pass, {.strides = {2, 2}, .padding = Padding::kSame}, {32, 56, 56, 64},
                  {3, 3, 64, 128}, type, ending);
}

class CudnnEnginesTest : public DescribedGpuTest {
 protected:
  ConvolutionPlanner::Options Options() {
    return {.library = library_.get(), .device = &*device_, .tuner = &tuner_};
  }
  absl::StatusOr<ConvolutionPlan> Plan(const ConvolutionGraph& graph,
                                       const ConvolutionDemands& demands = {}) {
    return ConvolutionPlanner({.library = library_.get(), .device = &*device_})
        .Plan(graph, demands, kNode);
  }

  AlgorithmTuner tuner_{{}};
};

TEST_F(CudnnEnginesTest, EveryPassHasAnEngineThatTheDemandsAllow) {
  for (const Pass pass : kPasses) {
    for (const ComputeDtype type :
         {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
      for (const ConvolutionDemands& demands :
           {ConvolutionDemands{}, ConvolutionDemands{.tf32 = true},
            ConvolutionDemands{.deterministic = true}}) {
        const auto plan = Plan(Layer(pass, type), demands);
        ASSERT_TRUE(plan.ok()) << plan.status();
        EXPECT_TRUE(MayCompute(plan->notes(), type, demands)) << GraphText(plan->graph());
        EXPECT_LE(plan->workspace_bytes(), demands.workspace_limit_bytes);
        // What these GPUs are bought for.
        EXPECT_EQ(plan->notes().tensor_cores, type != ComputeDtype::kFloat32 || demands.tf32);
      }
    }
  }
}

TEST_F(CudnnEnginesTest, BiasAndReluAreComputedAlong) {
  for (const ComputeDtype type :
       {ComputeDtype::kFloat32, ComputeDtype::kBfloat16, ComputeDtype::kFloat16}) {
    for (const ConvolutionEpilogue ending :
         {ConvolutionEpilogue::kBias, ConvolutionEpilogue::kBiasAndRelu}) {
      const auto plan = Plan(Layer(Pass::kForward, type, ending));
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->notes().tensor_cores, type != ComputeDtype::kFloat32)
          << GraphText(plan->graph()) << " engine " << EngineConfigText(plan->config());
    }
  }
}

// Whatever a model asks for: odd extents, groups, unequal zeros, steps larger than the window.
TEST_F(CudnnEnginesTest, AnyConvolutionHasAnEngine) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 15; ++i) {
    const int64_t groups = pick(0, 2) == 0 ? pick(2, 4) : 1;
    Window window = {.strides = {pick(1, 3), pick(1, 3)}};
    if (pick(0, 2) == 0) window.dilation = {pick(1, 3), pick(1, 3)};
    if (window.dilation != std::array<int64_t, 2>{1, 1}) window.strides = {1, 1};
    if (pick(0, 1) == 0) {
      window.padding = Padding::kSame;
    } else {
      window.zeros_before = {pick(0, 2), pick(0, 2)};
      window.zeros_after = {pick(0, 2), pick(0, 2)};
    }
    const Shape kernel = {pick(1, 4), pick(1, 4), pick(1, 9), groups * pick(1, 9)};
    const Shape x = {pick(1, 5), pick(10, 20), pick(10, 20), groups * kernel[2]};
    for (const Pass pass : kPasses) {
      const auto type = static_cast<ComputeDtype>(pick(0, 2));
      ConvolutionEpilogue ending = ConvolutionEpilogue::kNone;
      if (pass == Pass::kForward) ending = static_cast<ConvolutionEpilogue>(pick(0, 2));
      const ConvolutionGraph graph = Describe(pass, window, x, kernel, type, ending);
      const auto plan = Plan(graph, {.deterministic = pick(0, 1) == 0});
      EXPECT_TRUE(plan.ok()) << GraphText(graph) << "\n" << plan.status();
    }
  }
}

TEST_F(CudnnEnginesTest, StaysBelowTheLimitOfTheWorkspace) {
  const ConvolutionGraph graph = Layer(Pass::kBackwardFilter);
  const auto free = Plan(graph), limited = Plan(graph, {.workspace_limit_bytes = 0});
  ASSERT_TRUE(free.ok() && limited.ok()) << free.status() << limited.status();
  EXPECT_GT(free->workspace_bytes(), 0);
  EXPECT_EQ(limited->workspace_bytes(), 0);
}

TEST_F(CudnnEnginesTest, SaysWhichLayerHasNoEngine) {
  const ConvolutionGraph graph = Layer(Pass::kForward);
  // What none can keep to: what cuDNN has an engine for depends on the machine.
  const absl::Status status = Plan(graph, {.workspace_limit_bytes = -1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("Conv2D "), HasSubstr(" conv"),
                                      HasSubstr("NVIDIA H100"), HasSubstr(GraphText(graph))));
}

TEST_F(CudnnEnginesTest, MistakesAreErrorsOfTheirCall) {
  ConvolutionGraph graph = Layer(Pass::kForward);
  graph.y.dims[2] += 1;
  const absl::Status status = Plan(graph).status();
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cudnnBackendFinalize "), HasSubstr(" Conv2D "), HasSubstr(" conv")));
}

TEST_F(CudnnEnginesTest, AnEngineIsMadeAgainFromItsConfig) {
  const ConvolutionGraph graph = Layer(Pass::kBackwardData);
  const auto operations = OperationGraph::Create(*library_, graph, kNode);
  ASSERT_TRUE(operations.ok()) << operations.status();
  auto engines = SuggestEngines(*library_, *device_, *operations, kNode);
  ASSERT_TRUE(engines.ok()) << engines.status();
  ASSERT_GT(engines->size(), 5u);
  // How an engine is set is a part of it: how many slices it cuts a sum into, say.
  EXPECT_TRUE(std::ranges::any_of(
      *engines, [](const Engine& engine) { return !engine.config.knobs.empty(); }));
  for (Engine& suggested : *engines) {
    SCOPED_TRACE(EngineConfigText(suggested.config));
    auto made = MakeEngine(*library_, *device_, *operations, suggested.config, kNode);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->config, suggested.config);
    EXPECT_EQ(made->notes.tensor_cores, suggested.notes.tensor_cores);
    EXPECT_EQ(made->notes.nondeterministic, suggested.notes.nondeterministic);
    const auto plan = ConvolutionPlan::Create(*library_, *device_, graph, *std::move(made), kNode);
    const auto first =
        ConvolutionPlan::Create(*library_, *device_, graph, std::move(suggested), kNode);
    ASSERT_EQ(plan.ok(), first.ok()) << plan.status() << first.status();
    if (plan.ok()) {
      EXPECT_EQ(plan->workspace_bytes(), first->workspace_bytes());
    }
  }
  EXPECT_FALSE(MakeEngine(*library_, *device_, *operations, {.engine = 9999}, kNode).ok());
}

TEST_F(CudnnEnginesTest, MeasuresOnceAndTakesTheFastest) {
  const ConvolutionGraph graph = Layer(Pass::kBackwardFilter);
  ConvolutionPlanner::Options options = Options();
  std::vector<EngineConfig> measured;
  options.measure = [&](ConvolutionPlan& plan) -> absl::StatusOr<AlgorithmTrial> {
    measured.push_back(plan.config());
    const size_t compared = measured.size() - kWarmUps;  // the first of them is 1
    if (compared == 1) return absl::ResourceExhaustedError("no memory");
    return AlgorithmTrial{compared == 4 ? 1.0 : 2.0};
  };
  const auto plan = ConvolutionPlanner(options).Plan(graph, {}, kNode);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(measured.size(), kWarmUps + 10u);
  EXPECT_LE(measured.size(), kWarmUps + kMeasuredAlgorithms);
  EXPECT_EQ(plan->config(), measured[kWarmUps + 3]);
  const size_t before = measured.size();
  // The next one knows.
  const auto again = ConvolutionPlanner(options).Plan(graph, {}, kNode);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(measured.size(), before);
  EXPECT_EQ(again->config(), plan->config());
}

TEST_F(CudnnEnginesTest, AnEngineWithWrongResultsIsNotTaken) {
  const ConvolutionGraph graph = Layer(Pass::kForward);
  const SamplePlaces places(graph.written().elements());
  ConvolutionPlanner::Options options = Options();
  options.measure = [&](ConvolutionPlan&) -> absl::StatusOr<AlgorithmTrial> {
    return AlgorithmTrial{
        .time = 1, .sample = std::vector<float>(places.count, 1), .tolerance = 0.01};
  };
  for (const ConvolutionDemands& demands :
       {ConvolutionDemands{}, ConvolutionDemands{.deterministic = true, .checked = true}}) {
    const absl::Status status = ConvolutionPlanner(options).Plan(graph, demands, kNode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), HasSubstr(GraphText(graph)));
  }
}

TEST_F(CudnnEnginesTest, ADeterministicJobMeasuresNothing) {
  const ConvolutionGraph graph = Layer(Pass::kBackwardFilter);
  ConvolutionPlanner::Options options = Options();
  options.measure = [](ConvolutionPlan&) -> absl::StatusOr<AlgorithmTrial> {
    ADD_FAILURE() << "measured";
    return AlgorithmTrial{1.0};
  };
  const auto first = ConvolutionPlanner(options).Plan(graph, {.deterministic = true}, kNode);
  const auto second = Plan(graph, {.deterministic = true});
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->config(), second->config());
}

// Whatever the file says: of an engine that is not there, and of one that a job without TF32 must
// not have.
TEST_F(CudnnEnginesTest, AKeptEngineThatIsNotAllowedIsNotTaken) {
  const ConvolutionGraph graph = Layer(Pass::kForward, ComputeDtype::kFloat32);
  const auto tf32 = Plan(graph, {.tf32 = true});
  ASSERT_TRUE(tf32.ok()) << tf32.status();
  const TemporaryDirectory directory;
  const AlgorithmTuner::Options options = {.cache_path = directory / "plans"};
  for (const std::string& choice : {std::string("9999"), std::string("x"), tf32->choice()}) {
    const AlgorithmKey key = {.libraries = library_->name(), .work = GraphText(graph)};
    ASSERT_TRUE(AlgorithmCache(options.cache_path).Keep(key, choice).ok());
    AlgorithmTuner tuner(options);
    ConvolutionPlanner::Options planning = Options();
    planning.tuner = &tuner;
    planning.measure = [](ConvolutionPlan&) -> absl::StatusOr<AlgorithmTrial> {
      return AlgorithmTrial{1.0};
    };
    const auto plan = ConvolutionPlanner(planning).Plan(graph, {}, kNode);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NE(plan->choice(), choice);
    EXPECT_FALSE(plan->notes().tensor_cores);
    EXPECT_EQ(AlgorithmCache(options.cache_path).Find(key), plan->choice());
  }
}

}  // namespace
}  // namespace shoal::cuda
