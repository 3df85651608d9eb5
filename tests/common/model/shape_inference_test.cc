#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model/graph.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/add.h"
#include "common/model/ops/bias.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/dropout.h"
#include "common/model/ops/loss.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"
#include "common/model/ops/softmax.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The one output, or {} with the error shown.
Shape Infer(const Op& op, const std::vector<Shape>& inputs) {
  const absl::StatusOr<std::vector<Shape>> shapes = op.InferShapes(inputs);
  EXPECT_TRUE(shapes.ok()) << shapes.status();
  return shapes.ok() ? (*shapes)[0] : Shape{};
}

std::string InferError(const Op& op, const std::vector<Shape>& inputs) {
  const absl::StatusOr<std::vector<Shape>> shapes = op.InferShapes(inputs);
  EXPECT_FALSE(shapes.ok());
  return std::string(shapes.status().message());
}

// Checks the definition of SAME and VALID by counting windows one by one.
TEST(WindowTest, AgreesWithCounting) {
  for (const int64_t in : {1, 2, 5, 7, 8, 28}) {
    for (const int64_t k : {1, 2, 3, 5}) {
      for (const int64_t stride : {1, 2, 3, 7}) {
        for (const int64_t dilation : {1, 2, 3}) {
          Window window{.size = {k, 1}, .strides = {stride, 1}, .dilation = {dilation, 1}};
          SCOPED_TRACE(testing::Message()
                       << in << " by " << k << " stride " << stride << " dilation " << dilation);
          int64_t count = 0;
          while (count * stride + (k - 1) * dilation < in) ++count;
          EXPECT_EQ(window.OutputExtent(0, in), count);
          EXPECT_EQ(window.PaddingBefore(0, in), 0);

          window.zeros_before[0] = 1;
          window.zeros_after[0] = 2;
          count = 0;
          while (count * stride + (k - 1) * dilation < in + 3) ++count;
          EXPECT_EQ(window.OutputExtent(0, in), count);
          EXPECT_EQ(window.PaddingBefore(0, in), 1);
          window.zeros_before = window.zeros_after = {0, 0};

          window.padding = Padding::kSame;
          count = 0;
          while (count * stride < in) ++count;
          EXPECT_EQ(window.OutputExtent(0, in), count);
          const int64_t reach = (count - 1) * stride + (k - 1) * dilation + 1;
          EXPECT_EQ(window.PaddingBefore(0, in), reach > in ? (reach - in) / 2 : 0);
        }
      }
    }
  }
}

TEST(ShapeInferenceTest, DenseReplacesTheLastAxis) {
  EXPECT_EQ(Infer(DenseOp(), {{kBatch, 7}, {7, 3}, {3}}), (Shape{kBatch, 3}));
  EXPECT_EQ(Infer(DenseOp(), {{kBatch, 4, 7}, {7, 3}}), (Shape{kBatch, 4, 3}));
  EXPECT_EQ(Infer(DenseBackwardDataOp(), {{kBatch, 4, 3}, {7, 3}}), (Shape{kBatch, 4, 7}));
  EXPECT_EQ(Infer(DenseBackwardWeightsOp(), {{kBatch, 7}, {kBatch, 3}}), (Shape{7, 3}));
  EXPECT_EQ(Infer(BiasBackwardOp(), {{kBatch, 5, 5, 3}}), (Shape{3}));
  EXPECT_THAT(InferError(DenseOp(), {{kBatch, 8}, {7, 3}}),
              AllOf(HasSubstr("(None, 8)"), HasSubstr("(7, 3)")));
  EXPECT_THAT(InferError(DenseOp(), {{kBatch, 7}, {7, 3}, {4}}), HasSubstr("(4,)"));
  InferError(DenseOp(), {{kBatch, 7}});
  InferError(DenseBackwardDataOp(), {{kBatch, 4}, {7, 3}});
  InferError(DenseBackwardWeightsOp(), {{kBatch, 2, 7}, {kBatch, 3, 3}});
  InferError(BiasBackwardOp(), {{3}});
}

TEST(ShapeInferenceTest, Conv2DHasAnOutputForEachWindow) {
  Conv2DOp op;
  op.window = {.size = {3, 5}, .strides = {2, 3}, .dilation = {1, 2}, .padding = Padding::kSame};
  op.groups = 2;
  EXPECT_EQ(Infer(op, {{kBatch, 9, 11, 4}, {3, 5, 2, 6}, {6}}), (Shape{kBatch, 5, 4, 6}));
  op.window.padding = Padding::kValid;
  EXPECT_EQ(Infer(op, {{kBatch, 9, 11, 4}, {3, 5, 2, 6}}), (Shape{kBatch, 4, 1, 6}));
  EXPECT_THAT(InferError(op, {{kBatch, 9, 8, 4}, {3, 5, 2, 6}}),
              AllOf(HasSubstr("(3, 5)"), HasSubstr("(None, 9, 8, 4)"), HasSubstr("dilated")));
  EXPECT_THAT(InferError(op, {{kBatch, 9, 11, 5}, {3, 5, 2, 6}}),
              AllOf(HasSubstr("(None, 9, 11, 5)"), HasSubstr("(3, 5, 2, 6)")));
  EXPECT_THAT(InferError(op, {{kBatch, 9, 11, 4}, {3, 5, 2, 7}}), HasSubstr("7 filters"));
  EXPECT_THAT(InferError(op, {{kBatch, 9}, {3, 5, 2, 7}}), HasSubstr("4 axes"));
}

TEST(ShapeInferenceTest, PoolingHasAnOutputForEachWindow) {
  Pool2DOp op;
  op.window = {.size = {2, 2}, .strides = {2, 2}};
  EXPECT_EQ(Infer(op, {{kBatch, 11, 13, 5}}), (Shape{kBatch, 5, 6, 5}));
  op.window.padding = Padding::kSame;
  EXPECT_EQ(Infer(op, {{kBatch, 11, 13, 5}}), (Shape{kBatch, 6, 7, 5}));
  op.window = {.size = {2, 2}, .strides = {3, 3}};
  EXPECT_EQ(Infer(op, {{kBatch, 11, 13, 5}}), (Shape{kBatch, 4, 4, 5}));
  InferError(op, {{kBatch, 1, 13, 5}});
  InferError(op, {{kBatch, 13, 5}});
  EXPECT_EQ(Infer(Pool2DBackwardOp(), {{kBatch, 4, 4, 5}, {kBatch, 2, 2, 5}, {kBatch, 2, 2, 5}}),
            (Shape{kBatch, 4, 4, 5}));

  GlobalAveragePool2DOp global;
  EXPECT_EQ(Infer(global, {{kBatch, 3, 4, 5}}), (Shape{kBatch, 5}));
  global.keep_dims = true;
  EXPECT_EQ(Infer(global, {{kBatch, 3, 4, 5}}), (Shape{kBatch, 1, 1, 5}));
  InferError(global, {{kBatch, 5}});
}

TEST(ShapeInferenceTest, ElementwiseOpsKeepTheirShape) {
  const Shape shape = {kBatch, 3, 5};
  EXPECT_EQ(Infer(ActivationOp(), {shape}), shape);
  EXPECT_EQ(Infer(ActivationBackwardOp(), {shape, shape, shape}), shape);
  EXPECT_EQ(Infer(SoftmaxOp(), {shape}), shape);
  EXPECT_EQ(Infer(SoftmaxBackwardOp(), {shape, shape}), shape);
  EXPECT_EQ(Infer(DropoutOp(), {shape}), shape);
  EXPECT_EQ(Infer(DropoutBackwardOp(), {shape}), shape);
  EXPECT_EQ(Infer(AddOp(), {shape, shape, shape}), shape);
  InferError(ActivationBackwardOp(), {shape, shape, {kBatch, 3}});
  InferError(SoftmaxOp(), {{kBatch}});
  InferError(AddOp(), {shape});
  EXPECT_THAT(InferError(AddOp(), {shape, {kBatch, 3, 6}}),
              AllOf(HasSubstr("(None, 3, 5)"), HasSubstr("(None, 3, 6)")));
}

TEST(ShapeInferenceTest, RescaleKeepsTheShape) {
  RescaleOp op;
  EXPECT_EQ(Infer(op, {{kBatch, 4, 4, 3}}), (Shape{kBatch, 4, 4, 3}));
  op.scale = {1, 2, 3};
  EXPECT_EQ(Infer(op, {{kBatch, 4, 4, 3}}), (Shape{kBatch, 4, 4, 3}));
  EXPECT_THAT(InferError(op, {{kBatch, 4, 4, 1}}), HasSubstr("scale has 3 values"));
}

TEST(ShapeInferenceTest, ReshapeKeepsTheElementCount) {
  ReshapeOp op;
  op.shape = {kBatch, 6, 2};
  EXPECT_EQ(Infer(op, {{kBatch, 3, 4}}), (Shape{kBatch, 6, 2}));
  EXPECT_THAT(InferError(op, {{kBatch, 3, 5}}),
              AllOf(HasSubstr("(None, 3, 5)"), HasSubstr("(None, 6, 2)")));
}

TEST(ShapeInferenceTest, ALossHasAValueForEachExample) {
  LossOp sparse;
  sparse.attributes.kind = LossAttributes::Kind::kSparseCategoricalCrossentropy;
  EXPECT_EQ(Infer(sparse, {{kBatch, 10}, {kBatch}}), (Shape{kBatch}));
  EXPECT_EQ(Infer(sparse, {{kBatch, 4, 10}, {kBatch, 4}}), (Shape{kBatch}));
  EXPECT_THAT(InferError(sparse, {{kBatch, 10}, {kBatch, 10}}), HasSubstr("(None,)"));
  InferError(sparse, {{kBatch}, {}});

  LossOp categorical;
  categorical.attributes.kind = LossAttributes::Kind::kCategoricalCrossentropy;
  EXPECT_EQ(Infer(categorical, {{kBatch, 10}, {kBatch, 10}}), (Shape{kBatch}));
  InferError(categorical, {{kBatch, 10}, {kBatch}});

  EXPECT_EQ(Infer(LossOp(), {{kBatch, 2, 2}, {kBatch, 2, 2}}), (Shape{kBatch}));
  EXPECT_EQ(Infer(LossBackwardOp(), {{kBatch, 2, 2}, {kBatch, 2, 2}}), (Shape{kBatch, 2, 2}));
}

TEST(GraphTest, NamesTheLayerOfAMisfit) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {kBatch, 8});
  const ValueId kernel = graph.AddVariable({.name = "d/kernel", .shape = {7, 3}});
  const auto y = graph.Add(std::make_shared<DenseOp>(), {x, kernel}, "d");
  EXPECT_THAT(std::string(y.status().message()), HasSubstr("layer \"d\" (Dense): "));
  EXPECT_TRUE(graph.nodes().empty());
}

TEST(GraphTest, ElementCountsAreBounded) {
  EXPECT_TRUE(CheckElementCount({kBatch, kMaxElements}).ok());
  EXPECT_TRUE(CheckElementCount({}).ok());
  EXPECT_FALSE(CheckElementCount({kBatch, kMaxElements, 2}).ok());
  EXPECT_FALSE(CheckElementCount({INT64_MAX, INT64_MAX, INT64_MAX}).ok());
  EXPECT_FALSE(CheckElementCount({kBatch, -3}).ok());
}

}  // namespace
}  // namespace shoal
