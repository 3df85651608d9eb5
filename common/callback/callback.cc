#include "common/callback/callback.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/json/json_text.h"
#include "common/json/keras_table.h"

namespace shoal {

Callback MakeEarlyStoppingCallback(KerasOptions& options);
Callback MakeModelCheckpointCallback(KerasOptions& options);

namespace {

using nlohmann::json;

constexpr char kMonitor[] = "monitor";
constexpr char kMode[] = "mode";

constexpr KerasType<Callback> kTypes[] = {
    {"EarlyStopping", MakeEarlyStoppingCallback},
    {"ModelCheckpoint", MakeModelCheckpointCallback},
};

// The alternatives to Keras's other callbacks. A test compares the schedules named here with the
// existing ones.
#define SHOAL_A_SCHEDULE                                                                  \
  "a schedule as its learning_rate: CosineDecay, CosineDecayRestarts, ExponentialDecay, " \
  "InverseTimeDecay, PiecewiseConstantDecay or PolynomialDecay"
constexpr ClassReplacement kReplacements[] = {
    {"BackupAndRestore", "every run keeps a backup: start it again with the same run directory"},
    {"CSVLogger", "every run writes history.csv"},
    {"LearningRateScheduler",
     "the learning rate depends on the step alone: give the optimizer " SHOAL_A_SCHEDULE},
    {"ReduceLROnPlateau",
     "the learning rate depends on the step alone: give the optimizer " SHOAL_A_SCHEDULE},
    {"SwapEMAWeights", "the optimizer's use_ema saves the averages"},
    {"TensorBoard", "curves are in history.csv, and Prometheus has the daemons' metrics"},
    {"TerminateOnNaN", "set $.stop_after_nan_steps to 1, as in Keras"},
};
#undef SHOAL_A_SCHEDULE

constexpr KerasTable<Callback> kTable("a callback", kTypes, {}, kReplacements);

// Decides "auto" like Keras.
void SetFigure(const std::string& path, const std::vector<MonitoredFigure>& figures,
               JsonErrors* errors, json* config, Callback* callback) {
  const std::string& name = callback->monitor.figure;
  const auto figure = std::find_if(figures.begin(), figures.end(),
                                   [&name](const auto& each) { return each.name == name; });
  if (figure == figures.end()) {
    const bool of_training = std::any_of(figures.begin(), figures.end(), [&name](const auto& each) {
      return each.name == "val_" + name;
    });
    std::vector<std::string> names;
    for (const MonitoredFigure& each : figures) names.push_back(each.name);
    errors->Add(
        path, absl::StrCat("is ", ShortJson(json(name)),
                           of_training ? ", a figure of the training set, which a coordinator that "
                                         "takes over knows only in part; "
                                       : ", which the job does not compute; ",
                           "must be one of ", absl::StrJoin(names, ", ")));
    return;
  }
  json& mode = (*config)[kMode];
  callback->monitor.maximize = mode == "auto" ? figure->maximize : mode == "max";
  mode = callback->monitor.maximize ? "max" : "min";
}

}  // namespace

void ReadMonitored(KerasOptions& options, MetricMonitor::Options* monitor) {
  JsonObject& given = options.given();
  if (const json* value = given.Find(kMonitor); value != nullptr && value->is_string()) {
    monitor->figure = value->get<std::string>();
  } else if (value != nullptr) {
    given.AddWrong(kMonitor, *value, "the name of a figure, for example \"val_loss\"");
  }
  options.Resolve(kMonitor, monitor->figure, "`monitor` (val_loss)");
  std::string mode = "auto";
  if (const json* value = given.Find(kMode); value != nullptr) {
    if (*value == "min" || *value == "max" || *value == "auto") {
      mode = value->get<std::string>();
    } else {
      given.AddWrong(kMode, *value, "\"min\", \"max\" or \"auto\"");
    }
  }
  options.Resolve(kMode, mode, "`mode` (auto; auto, min, max)");
  options.Ignore("verbose");
}

std::vector<Callback> ReadCallbacks(const json& value, const std::string& path,
                                    const std::vector<MonitoredFigure>& figures,
                                    JsonErrors* errors) {
  std::vector<Callback> callbacks;
  if (!value.is_array()) {
    errors->Add(path, absl::StrCat("is ", ShortJsonAndType(value),
                                   "; must be a list, for example [\"EarlyStopping\"]"));
    return callbacks;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string each_path = JsonPath(path, i);
    auto read = kTable.Read(value[i], each_path, errors);
    if (!read.has_value()) continue;
    Callback callback = std::move(read->made);
    callback.class_name = read->class_name;
    SetFigure(each_path + ".config.monitor", figures, errors, &read->canonical["config"],
              &callback);
    callback.config = read->canonical.dump();
    const bool twice = std::any_of(
        callbacks.begin(), callbacks.end(),
        [&callback](const Callback& other) { return other.class_name == callback.class_name; });
    if (twice)
      errors->Add(each_path, absl::StrCat("is a second ", callback.class_name, "; give one"));
    if (!twice) callbacks.push_back(std::move(callback));
  }
  return callbacks;
}

std::vector<std::string> CallbackDocs() { return kTable.Docs(/*with_names=*/false); }

}  // namespace shoal
