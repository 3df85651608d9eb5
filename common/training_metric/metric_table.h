#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/json/keras_options.h"
#include "common/training_metric/metric.h"

namespace shoal {

// A line of the table of all metrics.
struct MetricType {
  const char* class_name;  // Keras's
  const char* short_name;  // what Keras takes too: "mse"; empty where there is none
  std::unique_ptr<Metric> (*make)(KerasOptions& options);
};

// By any of the names that Keras takes: "MeanSquaredError", "mean_squared_error", "mse", "MSE".
// Null: Shoal lacks it.
const MetricType* FindMetricType(const std::string& name);

// Keras's name for a metric that is called otherwise elsewhere: "rmse". Empty: not known.
std::string KnownAs(const std::string& name);

// Keras's functions' names: "mean_squared_error".
std::vector<std::string> MetricNames();

// The rows of docs/job-file.md's table of metrics, which a test compares: "| `AUC` | … |".
std::vector<std::string> MetricDocs();

}  // namespace shoal
