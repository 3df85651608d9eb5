// What is tried out of a convolution, against its definition.

#include "worker/compute/cuda/cudnn/convolution_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/fakes/test_seed.h"
#include "tests/worker/compute/cuda/cudnn/convolutions_on_cpu.h"
#include "worker/compute/cuda/kernels/with_element.h"

namespace shoal::cuda {
namespace {

using ::testing::HasSubstr;
using Pass = ConvolutionGraph::Pass;

// What ConvolutionsOnCpu computes of TrialNumbers.
AlgorithmTrial Try(const ConvolutionGraph& graph) {
  auto made = ConvolutionsOnCpu().Make(graph, /*trains=*/true, {});
  EXPECT_TRUE(made.ok()) << made.status();
  std::vector<std::vector<char>> memory;
  std::vector<void*> addresses;
  const std::vector<TrialTensor> tensors = TrialTensorsOf(graph);
  for (size_t t = 0; t < tensors.size(); ++t) {
    memory.emplace_back(tensors[t].size_bytes());
    WithElement(tensors[t].type, [&]<typename Element>(Element) {
      auto* const to = reinterpret_cast<Element*>(memory.back().data());
      for (int64_t i = 0; i < tensors[t].elements; ++i)
        to[i] = FromFloat<Element>(TrialNumber(t, i));
    });
    addresses.push_back(memory.back().data());
  }
  std::vector<char> workspace(made->workspace_bytes);
  addresses.push_back(workspace.data());
  EXPECT_TRUE(made->kernel->Run(nullptr, addresses).ok());
  AlgorithmTrial trial = {.time = 1, .tolerance = SampleTolerance(graph.written().type)};
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].written) continue;
    const SamplePlaces places(tensors[t].elements);
    WithElement(tensors[t].type, [&]<typename Element>(Element) {
      const auto* const from = reinterpret_cast<const Element*>(memory[t].data());
      for (int64_t i = 0; i < places.count; ++i)
        trial.sample.push_back(ToFloat(from[i * places.apart]));
    });
  }
  return trial;
}

TEST(ConvolutionCheckTest, TheGraphComputesRightValues) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const int64_t groups = pick(0, 1) == 0 ? 1 : pick(2, 3);
    Window window = {.size = {pick(1, 4), pick(1, 4)}, .strides = {pick(1, 5), pick(1, 5)}};
    if (pick(0, 2) == 0) window.dilation = {pick(1, 3), pick(1, 3)}, window.strides = {1, 1};
    if (pick(0, 1) == 0) {
      window.padding = Padding::kSame;
    } else {
      window.zeros_before = {pick(0, 2), pick(0, 2)};
      window.zeros_after = {pick(0, 2), pick(0, 2)};
    }
    const Shape x = {pick(1, 3), pick(10, 14), pick(10, 14), groups * pick(1, 5)};
    Shape y = window.OutputShape(x).value();
    y[3] = groups * pick(1, 5);
    const auto pass = static_cast<Pass>(pick(0, 2));
    const ConvolutionGraph graph = DescribeConvolution(
        pass, window,
        {.x = x, .kernel = {window.size[0], window.size[1], x[3] / groups, y[3]}, .y = y},
        static_cast<ComputeDtype>(pick(0, 2)),
        pass == Pass::kForward ? static_cast<ConvolutionEpilogue>(pick(0, 2))
                               : ConvolutionEpilogue::kNone);
    SCOPED_TRACE(GraphText(graph));
    AlgorithmTrial trial = Try(graph);
    ConvolutionCheck check(graph);
    EXPECT_EQ(check.Check(trial), absl::OkStatus());
    // All of so few are looked at.
    const size_t wrong = static_cast<size_t>(pick(0, trial.sample.size() - 1));
    float largest = 0.1f;
    for (const float value : trial.sample) largest = std::max(largest, std::abs(value));
    trial.sample[wrong] += 0.05f * largest;
    EXPECT_EQ(check.Check(trial).code(), absl::StatusCode::kDataLoss);
    trial.sample[wrong] = NAN;
    EXPECT_THAT(std::string(check.Check(trial).message()), HasSubstr(GraphText(graph)));
  }
}

// Of the gradient of a filter over many large images few places are, as each adds up millions.
TEST(ConvolutionCheckTest, OfALargeOneFewPlacesAreComputed) {
  const Window window = {.size = {3, 3}, .padding = Padding::kSame};
  const ConvolutionGraph graph = DescribeConvolution(
      Pass::kBackwardFilter, window,
      {.x = {256, 112, 112, 64}, .kernel = {3, 3, 64, 64}, .y = {256, 112, 112, 64}},
      ComputeDtype::kFloat32);
  const SamplePlaces places(graph.written().elements());
  AlgorithmTrial trial = {
      .time = 1, .sample = std::vector<float>(places.count, 1e9f), .tolerance = 2};
  ConvolutionCheck check(graph);
  EXPECT_EQ(check.Check(trial), absl::OkStatus()) << "all is near enough";
  trial.tolerance = 0.5;
  EXPECT_EQ(check.Check(trial).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace shoal::cuda
