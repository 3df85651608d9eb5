#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/callback/metric_monitor.h"

namespace shoal {

class JsonErrors;
class KerasOptions;

// A callback of Keras that a job may have: one that follows a figure of the test set, keeps the
// checkpoint of the best epoch, and may end the training. Each class is one file here, with its
// line in the table in callback.cc. Plain data.
struct Callback {
  std::string class_name;
  MetricMonitor::Options monitor;
  // The training results in the values of the best epoch, and not in those of the last.
  bool restores_best = false;
  // What ReadCallbacks() reads back, "mode" decided: equal callbacks give equal texts.
  std::string config;
};

// A figure that a callback may follow.
struct MonitoredFigure {
  std::string name;  // "val_loss"
  bool maximize = false;
};

// Reads the list of callbacks that stands at `path`, each a Keras config ({"class_name", "config"})
// or a plain name, at most one of a class. What is wrong is added to `errors`; a callback of Keras
// that Shoal lacks with what is there instead.
std::vector<Callback> ReadCallbacks(const nlohmann::json& value, const std::string& path,
                                    const std::vector<MonitoredFigure>& figures,
                                    JsonErrors* errors);

// The rows of the documentation's table.
std::vector<std::string> CallbackDocs();

// Those that both classes have; for their files.
void ReadMonitored(KerasOptions& options, MetricMonitor::Options* monitor);

}  // namespace shoal
