// Layers under mixed_bfloat16 on a CPU with bfloat16, and on one without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/glu.h"
#include "common/model/ops/layer_normalization.h"
#include "common/model/ops/pool2d.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/resize.h"
#include "common/model/ops/softmax.h"
#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/models/model_building.h"
#include "tests/worker/compute/models/sparse_loss.h"
#include "tests/worker/compute/suite_backends.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/runner/graph_runner.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Large enough that the CPU's product is not one of those that it computes in float32.
constexpr int64_t kUnits = 256;
constexpr int64_t kExamples = 4;

// A Dense layer of `type`, then one in float32.
Graph TwoDense(ComputeDtype type) {
  ModelBuilding model({kBatch, kUnits});
  return model.ComputeIn(type)
      .Dense(kUnits, false)
      .ComputeIn(ComputeDtype::kFloat32)
      .Dense(2)
      .Build();
}

// The prediction for inputs that bfloat16 rounds to 1. All weights are 2^-8; the bias is 0.
std::vector<float> Predict(ComputeDtype type) {
  const auto runner =
      GraphRunner::Create({.model = TwoDense(type), .loss = kSparse}, CreateCpuBackend());
  EXPECT_TRUE(runner.ok()) << runner.status();
  if (!runner.ok()) return {};
  std::vector<float> parameters((*runner)->layout().size, 0x1p-8f);
  for (const auto& variable : (*runner)->layout().variables) {
    if (variable.size == 2) std::fill_n(parameters.begin() + variable.offset, 2, 0.0f);
  }
  const std::vector<float> input(kExamples * kUnits, 1 + 0x1p-10f);
  const auto predicted =
      (*runner)->Predict({.examples = kExamples, .inputs = {input}}, parameters, false);
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  return predicted.ok() ? *predicted : std::vector<float>();
}

bool HasBfloat16() {
  return ComputeDtypesOf(*CreateCpuBackend()).contains(ComputeDtype::kBfloat16);
}

TEST(CpuBfloat16Test, ALayerReadsWhatBfloat16Keeps) {
  if (!HasBfloat16()) GTEST_SKIP() << "This CPU has no bfloat16.";
  EXPECT_EQ(Predict(ComputeDtype::kBfloat16), std::vector<float>(2 * kExamples, 1));
}

TEST(CpuBfloat16Test, AFloat32LayerKeepsAllBits) {
  EXPECT_EQ(Predict(ComputeDtype::kFloat32), std::vector<float>(2 * kExamples, 1 + 0x1p-10f));
}

// float16 is in no CPU that oneDNN knows.
TEST(CpuBfloat16Test, TypesThatTheCpuLacksAreFloat32) {
  EXPECT_EQ(Predict(ComputeDtype::kFloat16), std::vector<float>(2 * kExamples, 1 + 0x1p-10f));
  if (HasBfloat16()) return;
  EXPECT_EQ(Predict(ComputeDtype::kBfloat16), std::vector<float>(2 * kExamples, 1 + 0x1p-10f));
}

TEST(CpuBfloat16Test, OneLineNamesTheLayersThatAreFloat32) {
  const auto backend = CreateCpuBackend();
  const std::string said = DescribePrecision(*backend, TwoDense(ComputeDtype::kBfloat16));
  if (HasBfloat16()) {
    EXPECT_EQ(said, "");
  } else {
    EXPECT_THAT(said, HasSubstr("bfloat16 (layer "));
  }
}

// Ops between convolutions and Dense layers that oneDNN does not compute, under mixed_bfloat16, and
// an average in float32.
Graph OwnLoops() {
  Graph graph;
  const auto add = [&](std::shared_ptr<const Op> op, std::vector<ValueId> inputs,
                       ComputeDtype type = ComputeDtype::kBfloat16) {
    const std::string layer = op->type();
    const auto value = graph.Add(std::move(op), std::move(inputs), layer, /*value_name=*/"", type);
    SHOAL_CHECK(value.ok(), value.status().ToString());
    return *value;
  };
  const auto variable = [&](const std::string& name, Shape shape) {
    return graph.AddVariable({.name = name, .shape = std::move(shape)});
  };
  ValueId value = graph.AddInput("x", {kBatch, 4, 4, 16});
  value = add(MakeBinary(BinaryOp::Kind::kMultiply), {value, variable("factors", {16})});
  value = add(std::make_shared<RescaleOp>(), {value});
  value = add(std::make_shared<LayerNormalizationOp>(),
              {value, variable("gamma", {16}), variable("beta", {16})});
  auto mish = std::make_shared<ActivationOp>();
  mish->attributes.kind = ActivationAttributes::Kind::kMish;
  value = add(std::move(mish), {value});
  auto resize = std::make_shared<ResizeOp>();
  resize->height = resize->width = 8;
  value = add(std::move(resize), {value});
  value = add(std::make_shared<GluOp>(), {value});
  value = add(std::make_shared<SoftmaxOp>(), {value});
  const ValueId repeated =
      add(std::make_shared<BroadcastLikeOp>(), {variable("terms", {8}), value});
  value = add(MakeBinary(BinaryOp::Kind::kSubtract), {value, repeated});
  value = add(std::make_shared<GlobalAveragePool2DOp>(), {value}, ComputeDtype::kFloat32);
  graph.SetOutputs({value});
  return graph;
}

TEST(CpuBfloat16Test, OpsThatOneDnnLacksAreInBfloat16) {
  if (!HasBfloat16()) GTEST_SKIP() << "This CPU has no bfloat16.";
  const auto backend = CreateCpuBackend();
  EXPECT_EQ(DescribePrecision(*backend, OwnLoops()), "");
  const auto training = BuildTrainingGraph(OwnLoops(), *LossOf("MeanSquaredError"));
  ASSERT_TRUE(training.ok()) << training.status();
  Plan plan(*training, PlanMode::kTrain, kExamples);
  RunPasses([&](const Node& node) { return backend->Supports(node); }, plan);
  std::set<std::string> in_bfloat16;
  for (const Node& node : plan.nodes()) {
    if (plan.element_type(node.outputs[0]) != ComputeDtype::kBfloat16) continue;
    in_bfloat16.insert(node.op->type());
    for (size_t i = 1; i < node.outputs.size(); ++i)
      EXPECT_EQ(plan.element_type(node.outputs[i]), ComputeDtype::kFloat32) << node.op->type();
  }
  EXPECT_THAT(in_bfloat16,
              IsSupersetOf({"Activation", "ActivationBackward", "Binary", "BroadcastLike", "Glu",
                            "GluBackward", "LayerNormalization", "LayerNormalizationBackward",
                            "Rescale", "Resize", "ResizeBackward", "Softmax", "SoftmaxBackward"}));
}

TEST(CpuBfloat16Test, EachActivationIsInBfloat16) {
  if (!HasBfloat16()) GTEST_SKIP() << "This CPU has no bfloat16.";
  using Kind = ActivationAttributes::Kind;
  const auto backend = CreateCpuBackend();
  for (int kind = 0; kind <= static_cast<int>(Kind::kSparsePlus); ++kind) {
    auto op = std::make_shared<ActivationOp>();
    op->attributes = {.kind = static_cast<Kind>(kind), .threshold = 0.5};
    EXPECT_TRUE(backend->Supports({.op = op, .compute_dtype = ComputeDtype::kBfloat16})) << kind;
  }
}

// What a float32 layer reads from one step of a model.
std::vector<float> ReadBehind(ModelBuilding& model, const std::vector<float>& input) {
  model.ComputeIn(ComputeDtype::kFloat32).Rescale({1}, {0});
  const auto runner =
      GraphRunner::Create({.model = model.Build(), .loss = kSparse}, CreateCpuBackend());
  EXPECT_TRUE(runner.ok()) << runner.status();
  if (!runner.ok()) return {};
  const auto predicted = (*runner)->Predict({.examples = 1, .inputs = {input}}, {}, false);
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  return predicted.ok() ? *predicted : std::vector<float>();
}

TEST(CpuBfloat16Test, ALoopStoresWhatBfloat16Keeps) {
  if (!HasBfloat16()) GTEST_SKIP() << "This CPU has no bfloat16.";
  ModelBuilding rescaled({kBatch, 3});
  rescaled.ComputeIn(ComputeDtype::kBfloat16).Rescale({1}, {0});
  EXPECT_EQ(ReadBehind(rescaled, std::vector<float>(3, 1 + 0x1p-10f)), std::vector<float>(3, 1));
  ModelBuilding shares({kBatch, 3});
  shares.ComputeIn(ComputeDtype::kBfloat16).Softmax();
  // The number of 8 bits next to 1 / 3.
  EXPECT_EQ(ReadBehind(shares, std::vector<float>(3, 0)), std::vector<float>(3, 0x1.56p-2f));
}

}  // namespace
}  // namespace shoal
