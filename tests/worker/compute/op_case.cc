#include "tests/worker/compute/op_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/conv2d.h"
#include "common/model/ops/rescale.h"

namespace shoal {
namespace {

// The number towards 0 that this type has, of those that are neither very small nor very large.
float ToType(ComputeDtype type, float value) {
  const uint32_t kept = type == ComputeDtype::kBfloat16  ? 0xffff0000
                        : type == ComputeDtype::kFloat16 ? 0xffffe000
                                                         : 0xffffffff;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & kept);
}

}  // namespace

int64_t OpCase::Pick(int64_t least, int64_t most) {
  if (small_) most = std::min(most, least + 2);
  return least + static_cast<int64_t>(random_() % (most - least + 1));
}

ValueId OpCase::Tensor(Shape shape, Fill fill, Regularizer regularizer) {
  const ValueId variable =
      AddVariable({.shape = std::move(shape), .regularizer = regularizer}, fill);
  return type_ == ComputeDtype::kFloat32 ? variable : AddIdentity(variable, type_);
}

ValueId OpCase::Kernel(Shape shape, int64_t terms) {
  const ValueId kernel = Tensor(std::move(shape));
  const float factor = 1.4f / std::sqrt(static_cast<float>(terms));
  for (float& value : variables_.back()) value = ToType(type_, value * factor);
  return kernel;
}

ValueId OpCase::AddIdentity(ValueId value, ComputeDtype type) {
  auto op = std::make_shared<ActivationOp>();
  op->attributes = {.kind = ActivationAttributes::Kind::kLeakyRelu, .negative_slope = 1};
  const auto same =
      graph_.Add(std::move(op), {value}, absl::StrCat("same_", value), /*value_name=*/"", type);
  SHOAL_CHECK(same.ok(), same.status().ToString());
  return *same;
}

void OpCase::SetOutput(ValueId output) {
  const bool plain = type_ == ComputeDtype::kFloat32;
  graph_.SetOutputs({plain ? output : AddIdentity(output, ComputeDtype::kFloat32)});
}

ValueId OpCase::MovingAverage(Shape shape, Fill fill) {
  return AddVariable(
      {.shape = std::move(shape), .rule = UpdateRule::kMovingAverage, .momentum = 0.9}, fill);
}

ValueId OpCase::AddVariable(Variable variable, Fill fill) {
  variable.name = absl::StrCat("variable ", variables_.size());
  variables_.push_back(Random(variable.shape, fill));
  return graph_.AddVariable(std::move(variable));
}

ValueId OpCase::Image(const Shape& shape) {
  // The gradient of a variable is row-major; that of what is made of it need not be.
  const ValueId image = Add(std::make_shared<RescaleOp>(), {Tensor(shape)});
  if (Flip()) return image;
  const int64_t channels = shape[3];
  const ValueId kernel = Tensor({1, 1, channels, channels});
  image_kernels_.insert(variables_.size() - 1);
  for (int64_t i = 0; i < channels * channels; ++i) {
    variables_.back()[i] = i % (channels + 1) == 0 ? 1.0f : 0.0f;
  }
  return Add(std::make_shared<Conv2DOp>(), {image, kernel});
}

Shape OpCase::ImageShape() { return {Pick(1, 5), Pick(4, 13), Pick(4, 13), Pick(1, 24)}; }

ValueId OpCase::Input(Shape shape, Fill fill) {
  number_inputs_.insert(inputs_.size());
  return AddInput(std::move(shape), fill);
}

ValueId OpCase::AddInput(Shape shape, Fill fill) {
  inputs_.push_back(Random(shape, fill));
  return graph_.AddInput(absl::StrCat("input ", inputs_.size() - 1), std::move(shape));
}

ValueId OpCase::ClassIds(Shape shape, int64_t classes) {
  const ValueId ids = AddInput(std::move(shape), Fill::kNormal);
  for (float& id : inputs_.back()) id = static_cast<float>(random_() % classes);
  return ids;
}

std::vector<ValueId> OpCase::AddNode(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  const std::string layer = absl::StrCat(op->type(), "_", graph_.nodes().size());
  auto outputs = graph_.AddNode(std::move(op), std::move(inputs), layer, /*value_name=*/"", type_);
  SHOAL_CHECK(outputs.ok(), outputs.status().ToString());
  return *std::move(outputs);
}

void OpCase::SetLoss(ValueId prediction, std::shared_ptr<const Loss> loss,
                     std::vector<float> target) {
  SetOutput(prediction);
  loss_ = std::move(loss);
  target_ = std::move(target);
}

TrainingGraph OpCase::BuildTraining() {
  auto training = BuildTrainingGraph(graph_, *loss_, {.weighted = weighted_});
  SHOAL_CHECK(training.ok(), training.status().ToString());
  const Shape& shape = training->graph.value(training->target).shape;
  inputs_.push_back(target_.empty() ? Random(shape, Fill::kNormal) : target_);
  // Far away, so that what rounding changes is little of the difference.
  if (target_.empty() && type_ != ComputeDtype::kFloat32) {
    for (float& value : inputs_.back()) value += 4;
  }
  if (weighted_) {
    inputs_.push_back(Random(training->graph.value(training->weights).shape, Fill::kPositive));
  }
  return *std::move(training);
}

std::string OpCase::PutNonFinite(int count) {
  struct Named {
    std::string tensor;
    std::vector<float>* values;
  };
  std::vector<Named> tensors;
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (image_kernels_.contains(v)) continue;
    tensors.push_back({absl::StrCat("variable ", v), &variables_[v]});
  }
  for (const size_t i : number_inputs_) {
    tensors.push_back({absl::StrCat("input ", i), &inputs_[i]});
  }
  constexpr float kNumbers[] = {std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity()};
  std::string places;
  for (; count > 0; --count) {
    SHOAL_CHECK(!tensors.empty(), "no tensor may hold any number");
    const auto& [tensor, values] = tensors[random_() % tensors.size()];
    const size_t i = random_() % values->size();
    (*values)[i] = kNumbers[random_() % 3];
    absl::StrAppend(&places, places.empty() ? "" : ", ", tensor, "[", i, "] = ", (*values)[i]);
  }
  return places;
}

std::vector<float> OpCase::Random(const Shape& shape, Fill fill) {
  std::normal_distribution<float> normal(0, 0.7f);
  std::vector<float> values(ElementCount(shape));
  const auto draw = [&](size_t i) {
    float value = normal(random_);
    // On a grid, half a step away from the numbers where functions have their kinks, and of which
    // no whole number of half steps is 1, where those of differences have theirs.
    constexpr double kSteps = 16384.25;
    if (small_) value = static_cast<float>((std::floor(value * kSteps) + 0.5) / kSteps);
    if (fill == Fill::kPositive) value = std::abs(value) + 0.1f;
    if (fill == Fill::kFar && i > 0) value += 1000;
    return ToType(type_, value);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    // Near 1 the losses of probabilities bend too much for a finite difference.
    const auto bends = [&](float value) {
      return fill == Fill::kPositive && std::abs(value - 1) < 0.05f;
    };
    do {
      values[i] = draw(i);
    } while (small_ && (bends(values[i]) || !drawn_.insert(values[i]).second));
  }
  return values;
}

}  // namespace shoal
