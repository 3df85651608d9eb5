#include "cli/trained_model/evaluation_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/display/number_text.h"
#include "cli/display/text_table.h"
#include "common/base/text/utf8.h"

namespace shoal {

EvaluationReport ReportOf(const TrainedModel& trained, const BatchResult& sums,
                          const std::string& data) {
  const auto examples = static_cast<double>(sums.examples);
  EvaluationReport report{.data = data,
                          .examples = static_cast<uint64_t>(sums.examples),
                          .loss = sums.loss_sum / examples};
  const auto& metrics = trained.model.metrics;
  const std::vector<double> figures = MetricResults(metrics, sums.metric_sums, examples);
  const std::vector<std::string>& names = trained.model.metric_names;
  for (size_t i = 0; i < names.size(); ++i) report.metrics.emplace_back(names[i], figures[i]);
  return report;
}

std::string FormatEvaluation(const TrainedModel& trained, const EvaluationReport& report) {
  TextTable table({"<checkpoint", absl::StrCat("<", trained.checkpoint)});
  table.AddRow(
      {"step",
       absl::StrCat(trained.step,
                    trained.total_steps > 0 ? absl::StrCat(" of ", trained.total_steps) : "",
                    trained.averaged ? ", the moving averages of its variables (use_ema)" : "")});
  table.AddRow({"data", absl::StrCat(FormatCount(static_cast<double>(report.examples)),
                                     report.examples == 1 ? " example" : " examples",
                                     ", labels of ", report.data)});
  table.AddRow({"loss", FormatNumber(report.loss)});
  for (const auto& [name, value] : report.metrics) table.AddRow({name, FormatNumber(value)});
  return table.ToString();
}

std::string EvaluationToJson(const TrainedModel& trained, const EvaluationReport& report) {
  nlohmann::ordered_json json = {{"checkpoint", EscapeInvalidUtf8(trained.checkpoint)},
                                 {"step", trained.step},
                                 {"averaged", trained.averaged},
                                 {"examples", report.examples},
                                 {"loss", report.loss}};
  json["metrics"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : report.metrics) json["metrics"][EscapeInvalidUtf8(name)] = value;
  return json.dump() + "\n";
}

}  // namespace shoal
