#include "worker/compute/plan/passes/folded_padding.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/model/ops/conv2d.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"
#include "tests/common/model/test_models.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/plan/passes/passes.h"

namespace shoal {
namespace {

const Window kThree = {.size = {3, 3}, .strides = {2, 2}};
// As Keras's MobileNetV2 pads an even image before a stride of 2.
const Margins kBelowAndRight = {.before = {0, 1, 0}, .after = {1, 2, 0}};

// What reads the model's input: "Pad", "Conv2D".
std::vector<std::string> ReadersOfInput(const Graph& graph) {
  std::vector<std::string> types;
  for (const Node& node : graph.nodes()) {
    if (node.inputs[0] == graph.inputs()[0]) types.push_back(node.op->type());
  }
  return types;
}

Graph Fold(const Graph& model) {
  const absl::StatusOr<Graph> folded = FoldPadding(model);
  EXPECT_TRUE(folded.ok()) << folded.status();
  return folded.ok() ? *folded : Graph();
}

template <typename OpType>
const OpType* FindOp(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (const auto* op = dynamic_cast<const OpType*>(node.op.get())) return op;
  }
  return nullptr;
}

template <typename OpType>
void ExpectZeros(const Graph& graph) {
  const auto* op = FindOp<OpType>(graph);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->window.zeros_before, (std::array<int64_t, 2>{0, 1}));
  EXPECT_EQ(op->window.zeros_after, (std::array<int64_t, 2>{1, 2}));
}

TEST(FoldPaddingTest, IntoBothKindsOfConvolution) {
  ModelBuilding conv({kBatch, 8, 8, 2}), depthwise({kBatch, 8, 8, 2});
  conv.Pad(kBelowAndRight).Conv2D(3, kThree);
  depthwise.Pad(kBelowAndRight).DepthwiseConv2D(kThree).BatchNormalization();
  const Graph of_conv = conv.Build(), of_depthwise = depthwise.Build();
  const Graph folded_conv = Fold(of_conv), folded_depthwise = Fold(of_depthwise);
  ExpectZeros<Conv2DOp>(folded_conv);
  ExpectZeros<DepthwiseConv2DOp>(folded_depthwise);
  EXPECT_EQ(ReadersOfInput(folded_conv), (std::vector<std::string>{"Pad", "Conv2D"}));
  EXPECT_EQ(folded_conv.value(folded_conv.outputs()[0]).shape,
            of_conv.value(of_conv.outputs()[0]).shape);
  // What else a model has is still there.
  ASSERT_EQ(folded_depthwise.variables().size(), of_depthwise.variables().size());
  for (size_t v = 0; v < of_depthwise.variables().size(); ++v) {
    EXPECT_EQ(folded_depthwise.variables()[v].name, of_depthwise.variables()[v].name);
    EXPECT_EQ(folded_depthwise.samples()[v] == kNoValue, of_depthwise.samples()[v] == kNoValue);
  }
}

TEST(FoldPaddingTest, OnlyWhereTheWindowCanHaveTheZeros) {
  const Window same = {.size = {3, 3}, .padding = Padding::kSame};
  const auto max = Pool2DOp::Kind::kMax;
  const Margins wide = {.before = {3, 0, 0}, .after = {0, 0, 0}};
  const Margins channels = {.before = {0, 0, 1}, .after = {0, 0, 0}};
  ModelBuilding padded_twice({kBatch, 8, 8, 2}), pooled({kBatch, 8, 8, 2}), far({kBatch, 8, 8, 2}),
      deeper({kBatch, 8, 8, 2});
  padded_twice.Pad(kBelowAndRight).Conv2D(3, same);
  pooled.Pad(kBelowAndRight).Pool2D(max, kThree);
  far.Pad(wide).Conv2D(3, kThree);
  deeper.Pad(channels).Conv2D(3, kThree);
  for (ModelBuilding* model : {&padded_twice, &pooled, &far, &deeper}) {
    EXPECT_EQ(ReadersOfInput(Fold(model->Build())), std::vector<std::string>{"Pad"});
  }
}

TEST(FoldPaddingTest, IntoAMaxPoolingBehindAReLU) {
  for (const double max_value : {-1.0, 6.0}) {
    ModelBuilding model({kBatch, 8, 8, 2});
    model.Conv2D(3, {}).Activation({.max_value = max_value});
    const ValueId active = model.current();
    model.Pad(kBelowAndRight).Pool2D(Pool2DOp::Kind::kMax, kThree);
    const Graph folded = Fold(model.Build());
    ExpectZeros<Pool2DOp>(folded);
    EXPECT_EQ(folded.nodes().back().inputs[0], active);
    EXPECT_EQ(folded.value(folded.outputs()[0]).shape, model.shape());
  }
}

TEST(FoldPaddingTest, IntoNoOtherPooling) {
  const auto max = Pool2DOp::Kind::kMax, average = Pool2DOp::Kind::kAverage;
  const auto pooled = [](ActivationAttributes activation, Pool2DOp::Kind kind, Window window) {
    ModelBuilding model({kBatch, 8, 8, 2});
    model.Activation(activation).Pad(kBelowAndRight).Pool2D(kind, window);
    return model.Build();
  };
  const Window dilated = {.size = {3, 3}, .dilation = {2, 2}};
  const Window same = {.size = {3, 3}, .padding = Padding::kSame};
  for (const Graph& model :
       {pooled({.negative_slope = 0.1}, max, kThree), pooled({.threshold = -1}, max, kThree),
        pooled({.kind = ActivationAttributes::Kind::kTanh}, max, kThree),
        pooled({}, average, kThree), pooled({}, max, dilated), pooled({}, max, same),
        pooled({}, max, {.size = {2, 2}})}) {
    const Graph folded = Fold(model);
    EXPECT_EQ(folded.nodes().back().inputs[0], folded.nodes()[1].outputs[0]);
  }
}

// With every layer under this dtype policy.
Json UnderPolicy(Json model, const std::string& policy) {
  if (model.is_object() && model.value("class_name", "") == "DTypePolicy") {
    model["config"]["name"] = policy;
    return model;
  }
  if (!model.is_structured()) return model;
  for (Json& part : model) part = UnderPolicy(std::move(part), policy);
  return model;
}

TEST(FoldPaddingTest, LeavesNoPaddingInKerassModels) {
  for (const std::string name : {"resnet50", "mobilenet_v2"}) {
    for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
      SCOPED_TRACE(name + " under " + policy);
      const Json model = Json::parse(ReadText("../examples/" + name + "/model.json"));
      const auto parsed = ParseKerasModel(UnderPolicy(model, policy).dump());
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_NE(FindOp<PadOp>(parsed->graph), nullptr);
      const Graph folded = Fold(parsed->graph);
      std::vector<bool> read(folded.values().size());
      for (const Node& node : folded.nodes()) {
        for (const ValueId input : node.inputs) read[input] = true;
      }
      for (const Node& node : folded.nodes()) {
        const bool pads = dynamic_cast<const PadOp*>(node.op.get()) != nullptr;
        EXPECT_FALSE(pads && read[node.outputs[0]]) << node.layer;
      }
    }
  }
}

// Whose convolutions and poolings take zeros at no cost.
TEST(FoldPaddingTest, IsTakenByTheBackendsThatAreToBeFast) {
  ModelBuilding model({kBatch, 8, 8, 2});
  model.Pad(kBelowAndRight).Conv2D(3, kThree);
  for (const std::string name : {"cpu", "cuda_on_cpu"}) {
    SCOPED_TRACE(name);
    const auto backend = CreateSuiteBackend(name);
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_TRUE((*backend)->rewrites_models());
    const auto rewritten = RewriteModel(model.Build());
    ASSERT_TRUE(rewritten.ok()) << rewritten.status();
    ExpectZeros<Conv2DOp>(*rewritten);
  }
}

// A padding layer in bfloat16 rounds what a convolution in float32 would read.
TEST(FoldPaddingTest, OnlyWhereNoDtypeIsLostWithTheLayer) {
  const auto readers = [](ComputeDtype padding, ComputeDtype convolution) {
    Graph graph;
    const ValueId x = graph.AddInput("x", {kBatch, 8, 8, 2});
    const ValueId kernel = graph.AddVariable({.name = "kernel", .shape = {3, 3, 2, 4}});
    auto pad = std::make_shared<PadOp>();
    pad->margins = kBelowAndRight;
    const ValueId padded = *graph.Add(std::move(pad), {x}, "pad", "", padding);
    auto conv = std::make_shared<Conv2DOp>();
    conv->window = kThree;
    graph.SetOutputs({*graph.Add(std::move(conv), {padded, kernel}, "conv", "", convolution)});
    return ReadersOfInput(Fold(graph)).size();
  };
  const auto f32 = ComputeDtype::kFloat32, bf16 = ComputeDtype::kBfloat16,
             f16 = ComputeDtype::kFloat16;
  EXPECT_EQ(readers(f32, f32), 2u);
  EXPECT_EQ(readers(bf16, bf16), 2u);
  EXPECT_EQ(readers(f32, bf16), 2u);
  EXPECT_EQ(readers(bf16, f32), 1u);
  EXPECT_EQ(readers(bf16, f16), 1u);
}

}  // namespace
}  // namespace shoal
