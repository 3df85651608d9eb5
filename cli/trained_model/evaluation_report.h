#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/trained_model/trained_model.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// What an evaluation came to.
struct EvaluationReport {
  std::string data;  // where the labels were read
  uint64_t examples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;  // in the order of the job
};
// Of the sums over all batches.
EvaluationReport ReportOf(const TrainedModel& trained, const BatchResult& sums,
                          const std::string& data);

// For people: a line for each figure, as `shoal train` shows it.
std::string FormatEvaluation(const TrainedModel& trained, const EvaluationReport& report);
// {"checkpoint": …, "step": …, "averaged": …, "examples": …, "loss": …, "metrics": {NAME: …}}: in
// one line, all digits. A figure that is no number is null.
std::string EvaluationToJson(const TrainedModel& trained, const EvaluationReport& report);

}  // namespace shoal
