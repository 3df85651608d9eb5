#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_call.h"
#include "common/model/keras/layer_table.h"
#include "common/model/keras/options/factor_option.h"
#include "common/model/ops/mode_switch.h"
#include "common/model/ops/random_uniform.h"
#include "common/model/training/expression.h"

// Layers that change the values of images in training. Each draws one random number for each image.

namespace shoal {
namespace {

class RandomColor : public LayerConfig {
 public:
  absl::StatusOr<ValueId> Call(LayerCall& call) override {
    SHOAL_RETURN_IF_ERROR(call.ExpectImages());
    auto random = std::make_shared<RandomUniformOp>();
    random->ranges = {range_};
    random->layer_seed = call.RandomSeed(seed_);
    SHOAL_ASSIGN_OR_RETURN(ValueId number, call.Add(std::move(random)));
    SHOAL_ASSIGN_OR_RETURN(number, call.Reshape(number, {call.input_shape()[0], 1, 1, 1}));
    FormulaContext context(&call.graph()->graph, call.path(), call.compute_dtype());
    const Expression x = {&context, call.inputs()[0]};
    const Expression changed =
        Clip(Change(x, {&context, number}), value_range_.low, value_range_.high);
    SHOAL_RETURN_IF_ERROR(context.status());
    return call.Add(std::make_shared<ModeSwitchOp>(), {changed.id, x.id});
  }

 protected:
  explicit RandomColor(LayerOptions& options)
      : value_range_(ReadValueRange(options)), seed_(options.Seed()) {
    options.ExpectChannelsLast();
  }

  const RandomUniformOp::Range value_range_;
  RandomUniformOp::Range range_;  // range of the random number

 private:
  virtual Expression Change(Expression x, Expression number) const = 0;

  const int64_t seed_;
};

// (x - mean) · number + mean, with the mean of each channel of an image.
class RandomContrast : public RandomColor {
 public:
  explicit RandomContrast(LayerOptions& options) : RandomColor(options) {
    const JsonNode json = options["factor"];
    RandomUniformOp::Range factor =
        ReadFactor(options, "factor", {.min = 0, .max = 1, .list_may_exceed = true});
    if (options.traits().keras2) {  // one number also sets `low`; a list keeps its order
      if (!json.is_array()) factor.low = factor.high;
      if (json.size() == 2 && json.at(0).Number(0).value_or(0) > factor.low) {
        std::swap(factor.low, factor.high);
      }
    }
    range_ = {1 - factor.low, 1 + factor.high};
    if (range_.low > range_.high) {
      options.Take(json.Invalid(absl::StrCat(json.Text(), " leaves no number from 1 - ", factor.low,
                                             " to 1 + ", factor.high)));
    }
  }

 private:
  Expression Change(Expression x, Expression number) const override {
    const double pixels = static_cast<double>(x.shape()[1] * x.shape()[2]);
    const Expression mean = (1 / pixels) * SumOver(x, {1, 2});
    return (x - mean) * number + mean;
  }
};

class RandomBrightness : public RandomColor {
 public:
  explicit RandomBrightness(LayerOptions& options) : RandomColor(options) {
    const RandomUniformOp::Range factor =
        ReadFactor(options, "factor", {.min = -1, .max = 1, .list_may_exceed = true});
    const double extent = value_range_.high - value_range_.low;
    range_ = {extent * factor.low, extent * factor.high};
  }

 private:
  Expression Change(Expression x, Expression number) const override { return x + number; }
};

}  // namespace

extern const LayerType kRandomContrastLayer = {
    "RandomContrast", LayerType::Inputs::kOne,
    "In training, brings each image's values nearer to the mean of their channel, or takes them "
    "away from it",
    ReadAs<RandomContrast>, LayerType::Integers::kRounded};

extern const LayerType kRandomBrightnessLayer = {
    "RandomBrightness", LayerType::Inputs::kOne, "In training, makes each image lighter or darker",
    ReadAs<RandomBrightness>, LayerType::Integers::kRounded};

}  // namespace shoal
