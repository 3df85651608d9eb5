// Convolutions of single pixels as products of matrices, and the choice between these and others.

#include "worker/compute/cuda/ops/pointwise_convolutions.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/cuda/cudnn/convolutions_on_cpu.h"
#include "tests/worker/compute/cuda/plain_products.h"
#include "tests/worker/compute/expect_near.h"

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

constexpr Window kSinglePixels = {.size = {1, 1}};
const ConvolutionShapes kShapes = {.x = {3, 4, 5, 6}, .kernel = {1, 1, 6, 7}, .y = {3, 4, 5, 7}};

ConvolutionGraph Describe(Pass pass, ConvolutionEpilogue ending = ConvolutionEpilogue::kNone) {
  return DescribeConvolution(pass, kSinglePixels, kShapes, ComputeDtype::kFloat32, ending);
}

// What it makes of the tensors of the graph, where each has its values.
std::vector<std::vector<float>> Compute(Convolutions& convolutions, const ConvolutionGraph& graph,
                                        std::vector<std::vector<float>> tensors) {
  auto made = convolutions.Make(graph, /*trains=*/true, {});
  EXPECT_TRUE(made.ok()) << made.status();
  std::vector<float> workspace(made->workspace_bytes / sizeof(float));
  std::vector<void*> addresses;
  for (std::vector<float>& tensor : tensors) addresses.push_back(tensor.data());
  addresses.push_back(workspace.data());
  const absl::Status run = made->kernel->Run(nullptr, addresses);
  EXPECT_TRUE(run.ok()) << run;
  return tensors;
}

TEST(PointwiseConvolutionsTest, ComputeWhatConvolutionsDo) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  PlainProducts products;
  ConvolutionsOnCpu on_cpu;
  const auto pointwise =
      CreatePointwiseConvolutions({&products, std::make_unique<ConvolutionsOnCpu>()});
  for (const ConvolutionGraph& graph :
       {Describe(Pass::kForward), Describe(Pass::kForward, ConvolutionEpilogue::kBias),
        Describe(Pass::kBackwardData), Describe(Pass::kBackwardFilter)}) {
    SCOPED_TRACE(GraphText(graph));
    ASSERT_TRUE(ProductOf(graph).has_value());
    std::vector<std::vector<float>> tensors;
    for (const GraphTensor& tensor : graph.tensors_in_memory()) {
      tensors.emplace_back(tensor.elements());
      for (float& value : tensors.back()) value = normal(random);
    }
    const auto computed = Compute(*pointwise, graph, tensors);
    const auto expected = Compute(on_cpu, graph, tensors);
    for (size_t i = 0; i < tensors.size(); ++i) {
      ExpectNear(computed[i], expected[i], 1e-5, 1, "tensor " + std::to_string(i));
    }
    EXPECT_NE(computed, tensors);
  }
}

TEST(PointwiseConvolutionsTest, NoOtherConvolutionIsAProduct) {
  const auto is_product = [](const Window& window, const ConvolutionShapes& shapes,
                             ConvolutionEpilogue ending = ConvolutionEpilogue::kNone) {
    return ProductOf(
               DescribeConvolution(Pass::kForward, window, shapes, ComputeDtype::kFloat32, ending))
        .has_value();
  };
  EXPECT_TRUE(is_product(kSinglePixels, kShapes, ConvolutionEpilogue::kBias));
  EXPECT_FALSE(is_product(kSinglePixels, kShapes, ConvolutionEpilogue::kBiasAndRelu));
  EXPECT_FALSE(is_product({.size = {1, 3}, .padding = Padding::kSame},
                          {.x = {3, 4, 5, 6}, .kernel = {1, 3, 6, 7}, .y = {3, 4, 5, 7}}));
  EXPECT_FALSE(is_product({.size = {1, 1}, .strides = {1, 2}},
                          {.x = {3, 4, 5, 6}, .kernel = {1, 1, 6, 7}, .y = {3, 4, 3, 7}}));
  EXPECT_FALSE(is_product(kSinglePixels,  // of two groups
                          {.x = {3, 4, 5, 6}, .kernel = {1, 1, 3, 8}, .y = {3, 4, 5, 8}}));
}

class NoKernel : public Kernel {
 public:
  absl::Status Run(const RunContext*, std::span<void* const>) override { return absl::OkStatus(); }
};

// Makes kernels that do nothing, or fails; counts what it is asked for.
class CountingConvolutions : public Convolutions {
 public:
  explicit CountingConvolutions(absl::Status status) : status_(std::move(status)) {}
  absl::StatusOr<Made> Make(const ConvolutionGraph&, bool, const NodeName&) override {
    ++asked_;
    if (!status_.ok()) return status_;
    return Made{std::make_unique<NoKernel>(), kWorkspaceBytes};
  }
  absl::StatusOr<std::string> Library() override { return "counting 1"; }
  static constexpr int64_t kWorkspaceBytes = 4711;

  int asked() const { return asked_; }

 private:
  const absl::Status status_;
  int asked_ = 0;
};

// As cuBLASLt has no algorithm for some.
class NoProducts : public PlainProducts {
 public:
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const MatrixProduct&, bool,
                                               const NodeName&) override {
    return absl::UnimplementedError("no algorithm");
  }
};

// Which was taken is told by the workspace that it wants.
class ChoiceTest : public ::testing::Test {
 protected:
  // Of a graph that is a product, where convolutions end so, and take so long as kernels.
  absl::StatusOr<bool> TakesTheProduct(const absl::Status& others,
                                       absl::StatusOr<double> time_of_others, bool trains = true) {
    auto convolutions = std::make_unique<CountingConvolutions>(others);
    counted_ = convolutions.get();
    made_by_ = CreatePointwiseConvolutions(
        {.products = products_.get(),
         .others = std::move(convolutions),
         .tuner = tuner_now_,
         .measure = [=, this](std::span<const TrialTensor> tensors, int64_t workspace_bytes,
                              Kernel&) -> absl::StatusOr<AlgorithmTrial> {
           ++measured_;
           EXPECT_EQ(tensors.size(), 3u);
           if (workspace_bytes != CountingConvolutions::kWorkspaceBytes) return AlgorithmTrial{2.0};
           if (!time_of_others.ok()) return time_of_others.status();
           return AlgorithmTrial{*time_of_others};
         }});
    auto made = made_by_->Make(Describe(Pass::kForward), trains, {});
    if (!made.ok()) return made.status();
    return made->workspace_bytes == products_->workspace_bytes();
  }

  std::unique_ptr<MatrixProducts> products_ = std::make_unique<PlainProducts>();
  AlgorithmTuner tuner_{{}};
  AlgorithmTuner* tuner_now_ = &tuner_;
  CountingConvolutions* counted_ = nullptr;
  // Without those that only warm up.
  int compared() const { return measured_ - kWarmUps; }
  int measured_ = 0;
  std::unique_ptr<Convolutions> made_by_;
};

TEST_F(ChoiceTest, AFasterConvolutionIsChosen) { EXPECT_EQ(*TakesTheProduct({}, 1.0), false); }

TEST_F(ChoiceTest, AFasterProductIsChosen) { EXPECT_EQ(*TakesTheProduct({}, 3.0), true); }

TEST_F(ChoiceTest, AChosenProductIsNotMeasuredAgain) {
  EXPECT_EQ(*TakesTheProduct({}, 3.0), true);
  EXPECT_EQ(compared(), 2);
  // Planning a convolution takes its time, too.
  EXPECT_EQ(*TakesTheProduct({}, 1.0), true);
  EXPECT_EQ(compared(), 2);
  EXPECT_EQ(counted_->asked(), 0);
}

TEST_F(ChoiceTest, AChosenConvolutionIsNotMeasuredAgain) {
  EXPECT_EQ(*TakesTheProduct({}, 1.0), false);
  EXPECT_EQ(*TakesTheProduct({}, 3.0), false);
  EXPECT_EQ(compared(), 2);
}

// As a damaged file has it, or one of a program that knows more ways.
TEST_F(ChoiceTest, AnUnknownCachedChoiceIsMeasuredAgain) {
  const TemporaryDirectory directory;
  const AlgorithmTuner::Options options = {.cache_path = directory / "plans"};
  ASSERT_TRUE(
      AlgorithmCache(options.cache_path)
          .Keep({.libraries = "plain 1 or counting 1", .work = GraphText(Describe(Pass::kForward))},
                "magic")
          .ok());
  AlgorithmTuner tuner(options);
  tuner_now_ = &tuner;
  EXPECT_EQ(*TakesTheProduct({}, 1.0), false);
  EXPECT_EQ(compared(), 2);
}

TEST_F(ChoiceTest, AnUnmeasurableConvolutionIsAProduct) {
  EXPECT_EQ(*TakesTheProduct({}, absl::ResourceExhaustedError("no memory")), true);
}

TEST_F(ChoiceTest, NothingIsMeasuredForAnEvaluation) {
  EXPECT_EQ(*TakesTheProduct({}, 1.0, /*trains=*/false), true);
  EXPECT_EQ(counted_->asked(), 0);
  EXPECT_EQ(measured_, 0);
}

TEST_F(ChoiceTest, AConvolutionThatOthersLackIsAProduct) {
  EXPECT_EQ(*TakesTheProduct(absl::UnimplementedError("none"), 1.0), true);
}

TEST_F(ChoiceTest, AnErrorOfOthersIsAnError) {
  EXPECT_EQ(TakesTheProduct(absl::InternalError("lost"), 1.0).status(),
            absl::InternalError("lost"));
}

TEST_F(ChoiceTest, OthersComputeAConvolutionThatIsNoProduct) {
  products_ = std::make_unique<NoProducts>();
  for (const bool trains : {false, true}) {
    EXPECT_EQ(*TakesTheProduct({}, 3.0, trains), false);
    EXPECT_EQ(counted_->asked(), 1);
  }
}

TEST_F(ChoiceTest, AConvolutionThatNobodyComputesIsUnimplemented) {
  products_ = std::make_unique<NoProducts>();
  EXPECT_EQ(TakesTheProduct(absl::UnimplementedError("none"), 1.0).status(),
            absl::UnimplementedError("none"));
}

}  // namespace
}  // namespace shoal::cuda
