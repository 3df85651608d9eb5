#include "tests/worker/compute/models/model_building.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/model/ops/add.h"
#include "common/model/ops/batch_normalization.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/dense.h"
#include "common/model/ops/depthwise_conv2d.h"
#include "common/model/ops/dropout.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"
#include "common/model/ops/softmax.h"

namespace shoal {

ModelBuilding::ModelBuilding(Shape input) : current_(graph_.AddInput("input", std::move(input))) {}

std::string ModelBuilding::NextLayer(const std::string& type) {
  return absl::StrCat(type, "_", layers_++);
}

ValueId ModelBuilding::AddVariable(const std::string& name, Shape shape) {
  Variable variable;
  variable.name = name;
  variable.shape = std::move(shape);
  return graph_.AddVariable(std::move(variable));
}

void ModelBuilding::Append(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  const std::string layer = NextLayer(op->type());
  auto value = graph_.Add(std::move(op), std::move(inputs), layer, /*value_name=*/"", type_);
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  current_ = *value;
}

ModelBuilding& ModelBuilding::Dense(int64_t units, bool bias) {
  const std::string layer = NextLayer("dense");
  std::vector<ValueId> inputs = {current_, AddVariable(layer + "/kernel", {shape().back(), units})};
  if (bias) inputs.push_back(AddVariable(layer + "/bias", {units}));
  Append(std::make_shared<DenseOp>(), std::move(inputs));
  return *this;
}

ModelBuilding& ModelBuilding::Conv2D(int64_t filters, Window window, int64_t groups, bool bias) {
  const std::string layer = NextLayer("conv2d");
  const Shape kernel = {window.size[0], window.size[1], shape().back() / groups, filters};
  std::vector<ValueId> inputs = {current_, AddVariable(layer + "/kernel", kernel)};
  if (bias) inputs.push_back(AddVariable(layer + "/bias", {filters}));
  auto op = std::make_shared<Conv2DOp>();
  op->window = window;
  op->groups = groups;
  Append(std::move(op), std::move(inputs));
  return *this;
}

ModelBuilding& ModelBuilding::DepthwiseConv2D(Window window) {
  const std::string layer = NextLayer("depthwise_conv2d");
  const Shape kernel = {window.size[0], window.size[1], shape().back(), 1};
  auto op = std::make_shared<DepthwiseConv2DOp>();
  op->window = window;
  Append(std::move(op), {current_, AddVariable(layer + "/kernel", kernel)});
  return *this;
}

ModelBuilding& ModelBuilding::BatchNormalization(bool frozen) {
  const std::string layer = NextLayer("batch_normalization");
  auto op = std::make_shared<BatchNormalizationOp>();
  op->frozen = frozen;
  std::vector<ValueId> inputs = {current_};
  for (const char* name : {"/moving_mean", "/moving_variance"}) {
    inputs.push_back(
        graph_.AddVariable({.name = layer + name,
                            .shape = {shape().back()},
                            .rule = frozen ? UpdateRule::kFrozen : UpdateRule::kMovingAverage,
                            .momentum = 0.9}));
  }
  for (const char* name : {"/gamma", "/beta"}) {
    inputs.push_back(AddVariable(layer + name, {shape().back()}));
  }
  const auto outputs = graph_.AddNode(std::move(op), inputs, layer, /*value_name=*/"", type_);
  SHOAL_CHECK(outputs.ok(), outputs.status().ToString());
  for (const int i : {1, 2}) {
    if (!frozen) graph_.SetSample(inputs[i], (*outputs)[i]);
  }
  current_ = (*outputs)[0];
  return *this;
}

ModelBuilding& ModelBuilding::Activation(ActivationAttributes attributes) {
  auto op = std::make_shared<ActivationOp>();
  op->attributes = attributes;
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Pad(Margins margins) {
  auto op = std::make_shared<PadOp>();
  op->margins = std::move(margins);
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Pool2D(Pool2DOp::Kind kind, Window window) {
  auto op = std::make_shared<Pool2DOp>();
  op->kind = kind;
  op->window = window;
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::GlobalAveragePool2D(bool keep_dims) {
  auto op = std::make_shared<GlobalAveragePool2DOp>();
  op->keep_dims = keep_dims;
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Flatten() {
  auto op = std::make_shared<ReshapeOp>();
  op->shape = {kBatch, ElementCount(Shape(shape().begin() + 1, shape().end()))};
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Dropout(double rate, DropoutGroups groups) {
  auto op = std::make_shared<DropoutOp>();
  op->rate = rate;
  op->groups = groups;
  op->layer_seed = 17 + layers_;
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Softmax() {
  Append(std::make_shared<SoftmaxOp>(), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Rescale(std::vector<double> scale, std::vector<double> offset) {
  auto op = std::make_shared<RescaleOp>();
  op->scale = std::move(scale);
  op->offset = std::move(offset);
  Append(std::move(op), {current_});
  return *this;
}

ModelBuilding& ModelBuilding::Add(ValueId other) {
  Append(std::make_shared<AddOp>(), {current_, other});
  return *this;
}

ModelBuilding& ModelBuilding::From(ValueId value) {
  current_ = value;
  return *this;
}

Graph ModelBuilding::Build() {
  graph_.SetOutputs({current_});
  return graph_;
}

Graph FashionCnn() {
  const Window conv = {.size = {3, 3}};
  const Window pool = {.size = {2, 2}, .strides = {2, 2}};
  return ModelBuilding({kBatch, 28, 28, 1})
      .Conv2D(32, conv)
      .Relu()
      .Pool2D(Pool2DOp::Kind::kMax, pool)
      .Conv2D(64, conv)
      .Relu()
      .Pool2D(Pool2DOp::Kind::kMax, pool)
      .Flatten()
      .Dense(128)
      .Relu()
      .Dense(10)
      .Build();
}

Graph FashionMlp(int64_t units) {
  return ModelBuilding({kBatch, 28, 28, 1})
      .Flatten()
      .Dense(units)
      .Relu()
      .Dense(units)
      .Relu()
      .Dense(units)
      .Relu()
      .Dense(10)
      .Build();
}

}  // namespace shoal
