#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/json/keras_options.h"
#include "common/optimizer/optimizer.h"

namespace shoal {

// A line of the table of all optimizers.
struct OptimizerType {
  const char* class_name;  // Keras's
  std::unique_ptr<Optimizer> (*make)(KerasOptions& options);
};

// By Keras's name, in any case, as Keras takes it: "Adam", "adam". Null: Shoal lacks it.
const OptimizerType* FindOptimizerType(const std::string& name);

std::vector<std::string> OptimizerTypeNames();

// The rows of docs/job-file.md's table of optimizers, which a test compares: "| `Adam` | … |". The
// first has the options that all have alike.
std::vector<std::string> OptimizerDocs();

}  // namespace shoal
