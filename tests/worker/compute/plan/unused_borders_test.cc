#include "worker/compute/plan/passes/unused_borders.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/model/ops/conv2d.h"
#include "tests/worker/compute/models/model_building.h"

namespace shoal {
namespace {

// Shapes of the outputs of all nodes.
std::vector<Shape> NodeShapes(const Graph& graph) {
  std::vector<Shape> shapes;
  for (const Node& node : graph.nodes()) shapes.push_back(graph.value(node.outputs[0]).shape);
  return shapes;
}

TEST(CropUnusedBordersTest, LeavesOutWhatAPoolingDiscards) {
  const auto cropped = CropUnusedBorders(FashionCnn());
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  const std::vector<Shape> shapes = NodeShapes(*cropped);
  EXPECT_EQ(shapes[0], (Shape{kBatch, 26, 26, 1}));   // crop
  EXPECT_EQ(shapes[1], (Shape{kBatch, 24, 24, 32}));  // convolution
  EXPECT_EQ(shapes[3], (Shape{kBatch, 12, 12, 32}));  // pooling
  EXPECT_EQ(shapes[4], (Shape{kBatch, 10, 10, 64}));
  EXPECT_EQ(shapes[6], (Shape{kBatch, 5, 5, 64}));
  EXPECT_EQ(cropped->variables().size(), FashionCnn().variables().size());
  EXPECT_EQ(cropped->value(cropped->outputs()[0]).shape, (Shape{kBatch, 10}));
}

TEST(CropUnusedBordersTest, KeepsTheSamplesOfMovingAverages) {
  ModelBuilding model({kBatch, 9, 9, 1});
  model.Conv2D(2, {.size = {2, 2}});
  model.Pool2D(Pool2DOp::Kind::kMax, {.size = {3, 3}, .strides = {3, 3}}).BatchNormalization();
  const Graph graph = model.Build();
  const auto cropped = CropUnusedBorders(graph);
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  EXPECT_EQ(NodeShapes(*cropped)[1], (Shape{kBatch, 6, 6, 2}));  // convolution
  ASSERT_EQ(cropped->variables().size(), graph.variables().size());
  for (size_t v = 0; v < graph.variables().size(); ++v) {
    EXPECT_EQ(cropped->samples()[v] == kNoValue, graph.samples()[v] == kNoValue);
  }
  EXPECT_NE(cropped->samples()[2], kNoValue);  // after kernel and bias
}

TEST(CropUnusedBordersTest, KeepsWhatIsPenalised) {
  const Window conv = {.size = {2, 2}}, pool = {.size = {3, 3}, .strides = {3, 3}};
  ModelBuilding model({kBatch, 9, 9, 1});
  model.Conv2D(2, conv).Pool2D(Pool2DOp::Kind::kMax, pool).Conv2D(2, conv);
  Graph graph = model.Build();
  const ValueId last = graph.nodes().back().outputs[0];
  graph.AddActivityPenalty(last, {.l1 = 0.5});
  const auto cropped = CropUnusedBorders(graph);
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  EXPECT_EQ(NodeShapes(*cropped)[1], (Shape{kBatch, 6, 6, 2}));  // convolution
  ASSERT_EQ(cropped->activity_penalties().size(), 1u);
  EXPECT_EQ(cropped->activity_penalties()[0].regularizer.l1, 0.5);
  EXPECT_EQ(cropped->activity_penalties()[0].value, cropped->nodes().back().outputs[0]);

  graph.AddActivityPenalty(graph.nodes()[0].outputs[0], {.l2 = 1});
  const auto whole = CropUnusedBorders(graph);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(NodeShapes(*whole), NodeShapes(graph));
}

TEST(CropUnusedBordersTest, KeepsWhatTheModelSaysOfItsInputAndItsLayers) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch, 9, 9, 1}, WholeNumbers{0, 255});
  const ValueId kernel = graph.AddVariable({.name = "kernel", .shape = {2, 2, 1, 2}});
  auto conv = std::make_shared<Conv2DOp>();
  conv->window.size = {2, 2};
  auto pool = std::make_shared<Pool2DOp>();
  pool->window = {.size = {3, 3}, .strides = {3, 3}};
  const ValueId y = *graph.Add(conv, {x, kernel}, "conv", "", ComputeDtype::kBfloat16);
  graph.SetOutputs({*graph.Add(pool, {y}, "pool", "", ComputeDtype::kFloat16)});
  const auto cropped = CropUnusedBorders(graph);
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  ASSERT_EQ(cropped->nodes().size(), 3u);
  EXPECT_EQ(cropped->nodes()[1].compute_dtype, ComputeDtype::kBfloat16);
  EXPECT_EQ(cropped->nodes()[2].compute_dtype, ComputeDtype::kFloat16);
  EXPECT_EQ(cropped->value(cropped->inputs()[0]).whole_numbers->max, 255);
}

TEST(CropUnusedBordersTest, KeepsWhatIsRead) {
  const Window conv = {.size = {3, 3}};
  const Window pool = {.size = {2, 2}, .strides = {2, 2}};
  const Window same = {.size = {3, 3}, .padding = Padding::kSame};
  const auto max = Pool2DOp::Kind::kMax;
  ModelBuilding padded({kBatch, 9, 9, 1});
  padded.Conv2D(2, same).Pool2D(max, pool).Flatten();
  ModelBuilding branch({kBatch, 9, 9, 1});
  branch.Conv2D(2, conv);
  const ValueId read_whole = branch.current();
  branch.Conv2D(2, same).Add(read_whole).Pool2D(max, pool);
  ModelBuilding strided({kBatch, 10, 10, 1});
  strided.Conv2D(2, {.size = {3, 3}, .strides = {2, 2}});
  ModelBuilding output({kBatch, 9, 9, 1});
  output.Conv2D(2, conv);
  for (ModelBuilding* model : {&padded, &branch, &strided, &output}) {
    const Graph graph = model->Build();
    const auto cropped = CropUnusedBorders(graph);
    ASSERT_TRUE(cropped.ok()) << cropped.status();
    EXPECT_EQ(NodeShapes(*cropped), NodeShapes(graph));
  }
}

}  // namespace
}  // namespace shoal
