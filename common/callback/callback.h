#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/callback/metric_monitor.h"

namespace shoal {

class JsonErrors;
class KerasOptions;

// A callback of Keras that a job may have. It follows a figure of the test set, keeps the
// checkpoint of the best epoch, and may end the training. Each class is one file here, with its
// line in the table in callback.cc. Plain data.
struct Callback {
  std::string class_name;
  MetricMonitor::Options monitor;
  // The training's result has the values of the best epoch instead of the last.
  bool restores_best = false;
  // The text that ReadCallbacks() reads, with "mode" decided: equal callbacks give equal texts.
  std::string config;
};

// A figure that a callback may follow.
struct MonitoredFigure {
  std::string name;  // "val_loss"
  bool maximize = false;
};

// Reads the list of callbacks at `path`, at most one of each class. Each is a Keras config
// ({"class_name", "config"}) or a plain name. Adds problems to `errors`; for a Keras callback that
// Shoal lacks, the error names the alternative.
std::vector<Callback> ReadCallbacks(const nlohmann::json& value, const std::string& path,
                                    const std::vector<MonitoredFigure>& figures,
                                    JsonErrors* errors);

// The rows of the documentation's table.
std::vector<std::string> CallbackDocs();

// Reads the options that both classes have; for their files.
void ReadMonitored(KerasOptions& options, MetricMonitor::Options* monitor);

}  // namespace shoal
