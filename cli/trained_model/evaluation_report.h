#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/trained_model/trained_model.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// The result of an evaluation.
struct EvaluationReport {
  std::string data;  // the source of the labels
  uint64_t examples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;  // in the order of the job
};
// Makes the report from the sums over all batches.
EvaluationReport ReportOf(const TrainedModel& trained, const BatchResult& sums,
                          const std::string& data);

// Formats a report for people: a line for each figure, as `shoal train` shows it.
std::string FormatEvaluation(const TrainedModel& trained, const EvaluationReport& report);
// Returns one line of JSON with all digits:
// {"checkpoint": …, "step": …, "averaged": …, "examples": …, "loss": …, "metrics": {NAME: …}}
// Figures that are not finite numbers are null.
std::string EvaluationToJson(const TrainedModel& trained, const EvaluationReport& report);

}  // namespace shoal
