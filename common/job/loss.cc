#include "common/job/loss.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"
#include "common/json/keras_object.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr char kSparse[] = "SparseCategoricalCrossentropy";
constexpr char kCategorical[] = "CategoricalCrossentropy";
constexpr char kMeanSquared[] = "MeanSquaredError";

const std::vector<std::string>& ClassNames() {
  static const auto* const kNames =
      new std::vector<std::string>{kSparse, kCategorical, kMeanSquared};
  return *kNames;
}

// Keras's class for any of the names Keras takes: "sparse_categorical_crossentropy", "mse". Empty:
// unknown.
std::string ClassOf(const std::string& name) {
  std::string bare;
  for (const char c : absl::AsciiStrToLower(name)) {
    if (c != '_') bare.push_back(c);
  }
  if (bare == "mse") return kMeanSquared;
  for (const std::string& candidate : ClassNames()) {
    if (bare == absl::AsciiStrToLower(candidate)) return candidate;
  }
  return "";
}

// Without sample weights, which Shoal has none of, all means are the mean over the batch.
void ReadReduction(JsonObject& config) {
  const json* value = config.Find("reduction");
  if (value == nullptr || value->is_null()) return;
  for (const char* mean : {"sum_over_batch_size", "auto", "mean", "mean_with_sample_weight"}) {
    if (*value == mean) return;
  }
  config.errors()->AddUnimplemented(
      config.PathOf("reduction"),
      absl::StrCat("is ", ShortJson(*value),
                   "; Shoal averages the loss over the batch, so this must be "
                   "\"sum_over_batch_size\" or left out"));
}

void RejectOtherAxis(JsonObject& config) {
  const json* value = config.Find("axis");
  if (value == nullptr || *value == -1) return;
  config.errors()->AddUnimplemented(config.PathOf("axis"),
                                    absl::StrCat("is ", ShortJson(*value),
                                                 "; classes must lie along the last "
                                                 "axis, so this must be -1 or left out"));
}

// Keras computes a loss in the dtype it is told to; Shoal in float32.
void RejectOtherDtype(JsonObject& config) {
  const json* value = config.Find("dtype");
  if (value == nullptr || value->is_null() || *value == "float32") return;
  if (value->is_object() && value->contains("config")) {
    const json& inner = (*value)["config"];
    if (inner.is_object() && inner.value("name", json()) == "float32") return;
  }
  config.errors()->AddUnimplemented(
      config.PathOf("dtype"),
      absl::StrCat("is ", ShortJson(*value), "; Shoal computes losses in \"float32\""));
}

void ReadConfig(const KerasObject& object, JsonErrors* errors, Job::Loss* loss) {
  JsonObject config(*object.config, object.config_path, errors);
  // "fn" is what Keras 2 writes into the configs of its wrapped functions; the class says it
  // already.
  for (const char* key : {"name", "fn"}) config.Ignore(key);
  ReadReduction(config);
  RejectOtherDtype(config);
  if (loss->class_name != kMeanSquared) {
    config.ReadBool("from_logits", &loss->from_logits);
    RejectOtherAxis(config);
  }
  if (loss->class_name == kSparse) RejectUnlessNull(config, "ignore_class", "class to ignore");
  if (loss->class_name == kCategorical) {
    config.ReadNumber("label_smoothing", {.min = 0, .max = 1}, &loss->label_smoothing);
  }
  config.RejectUnknownKeys();
}

}  // namespace

Job::Loss ReadLoss(const json& value, const std::string& path, JsonErrors* errors) {
  Job::Loss loss;
  KerasObject object;
  if (!ReadKerasObject(value, path, errors, &object)) return loss;
  loss.class_name = ClassOf(object.class_name);
  if (loss.class_name.empty()) {
    errors->AddUnimplemented(
        object.name_path,
        absl::StrCat("is ", ShortJson(object.class_name), ", a loss that Shoal lacks",
                     SuggestName(object.class_name, ClassNames())));
    return loss;
  }
  if (object.config != nullptr) ReadConfig(object, errors, &loss);
  return loss;
}

json LossToJson(const Job::Loss& loss) {
  json config = json::object();
  if (loss.class_name != kMeanSquared) config["from_logits"] = loss.from_logits;
  if (loss.class_name == kCategorical) config["label_smoothing"] = loss.label_smoothing;
  return {{"class_name", loss.class_name}, {"config", config}};
}

absl::StatusOr<Job::Loss> ParseLoss(const std::string& text, const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const json value, ParseJson(text, path));
  JsonErrors errors("");
  Job::Loss loss = ReadLoss(value, path, &errors);
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return loss;
}

}  // namespace shoal
