// What cuDNN is asked to compute of a convolution.

#include "worker/compute/cuda/cudnn/convolution_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace shoal::cuda {
namespace {

using ::testing::ElementsAre;
using Pass = ConvolutionGraph::Pass;

// A 3 x 5 filter over images of 8 x 9 pixels with 4 channels, in two groups.
const ConvolutionShapes kShapes = {.x = {2, 8, 9, 4}, .kernel = {3, 5, 2, 6}, .y = {2, 4, 5, 6}};
Window SameWindow() {
  return {.size = {3, 5}, .strides = {2, 2}, .dilation = {1, 1}, .padding = Padding::kSame};
}
ConvolutionGraph Describe(Pass pass, ConvolutionEpilogue ending = ConvolutionEpilogue::kNone,
                          ComputeDtype type = ComputeDtype::kBfloat16) {
  return DescribeConvolution(pass, SameWindow(), kShapes, type, ending);
}

TEST(ConvolutionGraphTest, TensorsHaveTheirChannelsLast) {
  const ConvolutionGraph graph = Describe(Pass::kBackwardData);
  EXPECT_EQ(graph.pass, Pass::kBackwardData);
  EXPECT_THAT(graph.x.dims, ElementsAre(2, 4, 8, 9));
  EXPECT_THAT(graph.x.strides, ElementsAre(8 * 9 * 4, 1, 9 * 4, 4));
  EXPECT_THAT(graph.filter.dims, ElementsAre(6, 2, 3, 5));
  EXPECT_THAT(graph.filter.strides, ElementsAre(3 * 5 * 2, 1, 5 * 2, 2));
  EXPECT_THAT(graph.y.dims, ElementsAre(2, 6, 4, 5));
  EXPECT_THAT(graph.y.strides, ElementsAre(4 * 5 * 6, 1, 5 * 6, 6));
  for (const GraphTensor& tensor : {graph.x, graph.filter, graph.y}) {
    EXPECT_EQ(tensor.type, ComputeDtype::kBfloat16);
    EXPECT_FALSE(tensor.is_virtual);
  }
}

// Keras's SAME puts the odd zero behind: 8 rows by windows of 3 with stride 2 need one, behind;
// 9 columns by windows of 5 need two on each side.
TEST(ConvolutionGraphTest, PadsUnequally) {
  const ConvolutionGraph graph = Describe(Pass::kForward);
  EXPECT_THAT(graph.padding_before, ElementsAre(0, 2));
  EXPECT_THAT(graph.padding_after, ElementsAre(1, 2));
}

// With VALID, what no window reaches is no padding, nor less than none.
TEST(ConvolutionGraphTest, LeavesOverWhatNoWindowReaches) {
  const Window window = {
      .size = {3, 3}, .strides = {3, 2}, .zeros_before = {0, 2}, .zeros_after = {0, 3}};
  const ConvolutionShapes shapes = {.x = {1, 8, 8, 1}, .kernel = {3, 3, 1, 1}, .y = {1, 2, 6, 1}};
  const ConvolutionGraph graph =
      DescribeConvolution(Pass::kForward, window, shapes, ComputeDtype::kFloat32);
  EXPECT_THAT(graph.padding_before, ElementsAre(0, 2));
  EXPECT_THAT(graph.padding_after, ElementsAre(0, 3));
}

TEST(ConvolutionGraphTest, DilationReachesFurther) {
  const Window window = {.size = {3, 3}, .dilation = {2, 3}, .padding = Padding::kSame};
  const ConvolutionShapes shapes = {.x = {1, 8, 8, 1}, .kernel = {3, 3, 1, 1}, .y = {1, 8, 8, 1}};
  const ConvolutionGraph graph =
      DescribeConvolution(Pass::kForward, window, shapes, ComputeDtype::kFloat32);
  EXPECT_THAT(graph.dilation, ElementsAre(2, 3));
  EXPECT_THAT(graph.padding_before, ElementsAre(2, 3));
  EXPECT_THAT(graph.padding_after, ElementsAre(2, 3));
}

TEST(ConvolutionGraphTest, FollowingOpsReadFloatsThatAreNotStored) {
  const ConvolutionGraph graph = Describe(Pass::kForward, ConvolutionEpilogue::kBiasAndRelu);
  ASSERT_EQ(graph.after.size(), 2u);
  const Pointwise &bias = graph.after[0], &relu = graph.after[1];
  EXPECT_EQ(bias.kind, Pointwise::Kind::kAddBias);
  EXPECT_THAT(bias.bias->dims, ElementsAre(1, 6, 1, 1));
  // cuDNN has no engine for a bias of another type than the images.
  EXPECT_EQ(bias.bias->type, ComputeDtype::kBfloat16);
  EXPECT_EQ(relu.kind, Pointwise::Kind::kRelu);
  EXPECT_TRUE(graph.y.is_virtual && bias.result.is_virtual);
  EXPECT_EQ(graph.y.type, ComputeDtype::kFloat32);
  EXPECT_EQ(bias.result.type, ComputeDtype::kFloat32);
  EXPECT_FALSE(relu.result.is_virtual);
  EXPECT_EQ(relu.result.type, ComputeDtype::kBfloat16);
  EXPECT_EQ(relu.result.dims, graph.y.dims);

  std::vector<int64_t> uids;
  for (const GraphTensor& tensor : graph.tensors_in_memory()) uids.push_back(tensor.uid);
  EXPECT_THAT(uids, ElementsAre(ConvolutionGraph::kX, ConvolutionGraph::kFilter,
                                ConvolutionGraph::kBias, ConvolutionGraph::kCutOff));
}

TEST(ConvolutionGraphTest, ABiasAloneIsTheResult) {
  const ConvolutionGraph graph = Describe(Pass::kForward, ConvolutionEpilogue::kBias);
  ASSERT_EQ(graph.after.size(), 1u);
  EXPECT_FALSE(graph.after[0].result.is_virtual);
  EXPECT_EQ(graph.after[0].result.uid, ConvolutionGraph::kBiased);
}

TEST(ConvolutionGraphTest, TheTextTellsGraphsApart) {
  std::set<std::string> texts;
  int graphs = 0;
  const auto add = [&](const ConvolutionGraph& graph) {
    EXPECT_EQ(GraphText(graph), GraphText(ConvolutionGraph(graph)));
    EXPECT_EQ(GraphText(graph).find_first_of("\t\n"), std::string::npos);
    texts.insert(GraphText(graph));
    ++graphs;
  };
  for (const Pass pass : {Pass::kForward, Pass::kBackwardData, Pass::kBackwardFilter}) {
    add(Describe(pass));
    add(Describe(pass, ConvolutionEpilogue::kNone, ComputeDtype::kFloat32));
    add(Describe(pass, ConvolutionEpilogue::kNone, ComputeDtype::kFloat16));
  }
  for (const ConvolutionEpilogue ending :
       {ConvolutionEpilogue::kBias, ConvolutionEpilogue::kBiasAndRelu}) {
    add(Describe(Pass::kForward, ending));
  }
  ConvolutionGraph graph = Describe(Pass::kForward);
  for (std::array<int64_t, 2>* field :
       {&graph.strides, &graph.dilation, &graph.padding_before, &graph.padding_after}) {
    (*field)[1] += 1;
    add(graph);
  }
  for (GraphTensor* tensor : {&graph.x, &graph.filter, &graph.y}) {
    tensor->dims[0] += 1;
    add(graph);
    tensor->strides[0] += 1;
    add(graph);
  }
  EXPECT_EQ(static_cast<int>(texts.size()), graphs);
}

}  // namespace
}  // namespace shoal::cuda
