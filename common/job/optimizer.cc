#include "common/job/optimizer.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/keras_object.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;
using Optimizer = Job::Optimizer;

constexpr char kSgd[] = "SGD";
constexpr char kAdam[] = "Adam";

void ReadLearningRate(JsonObject& config, Optimizer* optimizer) {
  const json* value = config.Find("learning_rate");
  if (value != nullptr && value->is_object()) {
    const json class_name = value->value("class_name", json("?"));
    config.errors()->AddUnimplemented(
        config.PathOf("learning_rate"),
        absl::StrCat("is the schedule ", ShortJson(class_name),
                     "; Shoal has no learning rate schedules, so this must be a number"));
    return;
  }
  config.ReadNumber("learning_rate", {.min = 0, .max = 1000, .above_min = true},
                    &optimizer->learning_rate);
}

void ReadWeightDecay(JsonObject& config, Optimizer* optimizer) {
  const json* value = config.Find("weight_decay");
  if (value == nullptr || value->is_null()) return;
  config.ReadNumber("weight_decay", {.min = 0, .max = 1000}, &optimizer->weight_decay);
}

// Keras 2's optimizers of before 2.11 have "decay", a schedule; 0 is none.
void RejectLegacyDecay(JsonObject& config) {
  const json* value = config.Find("decay");
  if (value == nullptr || value->is_null() || *value == 0) return;
  config.errors()->AddUnimplemented(
      config.PathOf("decay"),
      absl::StrCat("is ", ShortJson(*value),
                   "; Shoal has no decay of the learning rate, so this must be 0 "
                   "or left out"));
}

// What every optimizer of Keras has beside its own options.
void ReadCommon(JsonObject& config, Optimizer* optimizer) {
  ReadLearningRate(config, optimizer);
  ReadWeightDecay(config, optimizer);
  for (const char* key : {"clipnorm", "global_clipnorm", "clipvalue"}) {
    RejectUnlessNull(config, key, "clipping of gradients");
  }
  RejectUnlessFalse(config, "use_ema", "moving average of variables");
  RejectUnlessNull(config, "loss_scale_factor", "loss scaling");
  RejectUnlessNull(config, "gradient_accumulation_steps", "accumulation of gradients");
  RejectLegacyDecay(config);
  // These say nothing of the numbers, or nothing unless use_ema is true.
  for (const char* key :
       {"name", "ema_momentum", "ema_overwrite_frequency", "jit_compile", "is_legacy_optimizer"}) {
    config.Ignore(key);
  }
}

void ReadConfig(const KerasObject& object, JsonErrors* errors, Optimizer* optimizer) {
  JsonObject config(*object.config, object.config_path, errors);
  ReadCommon(config, optimizer);
  if (optimizer->kind == Optimizer::Kind::kSgd) {
    config.ReadNumber("momentum", {.min = 0, .max = 1}, &optimizer->momentum);
    config.ReadBool("nesterov", &optimizer->nesterov);
  } else {
    config.ReadNumber("beta_1", {.min = 0, .max = 1, .below_max = true}, &optimizer->beta_1);
    config.ReadNumber("beta_2", {.min = 0, .max = 1, .below_max = true}, &optimizer->beta_2);
    config.ReadNumber("epsilon", {.min = 0, .max = 1, .above_min = true}, &optimizer->epsilon);
    RejectUnlessFalse(config, "amsgrad", "AMSGrad");
  }
  config.RejectUnknownKeys();
}

}  // namespace

Optimizer ReadOptimizer(const json& value, const std::string& path, JsonErrors* errors) {
  Optimizer optimizer;
  KerasObject object;
  if (!ReadKerasObject(value, path, errors, &object)) return optimizer;
  // Keras too takes class names in any case.
  const std::string lower = absl::AsciiStrToLower(object.class_name);
  if (lower == "sgd") {
    optimizer.kind = Optimizer::Kind::kSgd;
    optimizer.learning_rate = 0.01;
  } else if (lower == "adam") {
    optimizer.kind = Optimizer::Kind::kAdam;
    optimizer.learning_rate = 0.001;
  } else {
    errors->AddUnimplemented(
        object.name_path,
        absl::StrCat("is ", ShortJson(object.class_name), ", an optimizer that Shoal lacks",
                     SuggestName(object.class_name, {kSgd, kAdam})));
    return optimizer;
  }
  if (object.config != nullptr) ReadConfig(object, errors, &optimizer);
  return optimizer;
}

json OptimizerToJson(const Optimizer& optimizer) {
  const bool sgd = optimizer.kind == Optimizer::Kind::kSgd;
  json config = {{"learning_rate", optimizer.learning_rate},
                 {"weight_decay", optimizer.weight_decay}};
  if (sgd) {
    config["momentum"] = optimizer.momentum;
    config["nesterov"] = optimizer.nesterov;
  } else {
    config["beta_1"] = optimizer.beta_1;
    config["beta_2"] = optimizer.beta_2;
    config["epsilon"] = optimizer.epsilon;
  }
  return {{"class_name", sgd ? kSgd : kAdam}, {"config", config}};
}

absl::StatusOr<Optimizer> ParseOptimizer(const std::string& text, const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const json value, ParseJson(text, path));
  JsonErrors errors("");
  Optimizer optimizer = ReadOptimizer(value, path, &errors);
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return optimizer;
}

}  // namespace shoal
