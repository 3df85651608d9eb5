#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/json/keras_options.h"
#include "common/loss/keras_loss.h"

namespace shoal {

// A line of the table of all losses.
struct LossType {
  const char* class_name;  // Keras's
  const char* short_name;  // what Keras takes too: "mse"; empty where there is none
  std::unique_ptr<KerasLoss> (*make)(KerasOptions& options);
};

// By any of the names that Keras takes: "MeanSquaredError", "mean_squared_error", "mse", "MSE".
// Null: Shoal lacks it.
const LossType* FindLossType(const std::string& name);

std::vector<std::string> LossTypeNames();

// The rows of docs/job-file.md's table of losses, which a test compares: "| `Huber` | … |".
std::vector<std::string> LossDocs();

}  // namespace shoal
