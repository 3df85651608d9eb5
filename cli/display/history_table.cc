#include "cli/display/history_table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/display/number_text.h"
#include "cli/display/text_table.h"

namespace shoal {
namespace {

// The metrics of all epochs: the newest may not have a test result yet.
std::vector<std::string> MetricColumns(const std::vector<proto::EpochResult>& history) {
  std::vector<std::string> training = {"loss"};
  std::vector<std::string> test;
  const auto add = [](const std::string& name, std::vector<std::string>* columns) {
    if (std::find(columns->begin(), columns->end(), name) == columns->end())
      columns->push_back(name);
  };
  for (const proto::EpochResult& epoch : history) {
    for (const auto& metric : epoch.metrics()) add(metric.name(), &training);
    if (epoch.has_test_loss()) add("test loss", &test);
    for (const auto& metric : epoch.test_metrics()) add("test " + metric.name(), &test);
  }
  training.insert(training.end(), test.begin(), test.end());
  return training;
}

std::string Cell(const proto::EpochResult& epoch, const std::string& column) {
  if (column == "loss") return FormatNumber(epoch.loss());
  if (column == "test loss") return epoch.has_test_loss() ? FormatNumber(epoch.test_loss()) : "";
  for (const auto& metric : epoch.metrics()) {
    if (column == metric.name()) return FormatNumber(metric.value());
  }
  for (const auto& metric : epoch.test_metrics()) {
    if (column == "test " + metric.name()) return FormatNumber(metric.value());
  }
  return "";
}

}  // namespace

std::string FormatHistoryTable(const std::vector<proto::EpochResult>& history) {
  if (history.empty()) return "";
  const std::vector<std::string> columns = MetricColumns(history);
  std::vector<std::string> header = {"epoch"};
  header.insert(header.end(), columns.begin(), columns.end());
  header.insert(header.end(), {"seconds", "examples/s"});
  TextTable table(std::move(header));
  for (const proto::EpochResult& epoch : history) {
    std::vector<std::string> row = {std::to_string(epoch.epoch() + 1)};
    for (const std::string& column : columns) row.push_back(Cell(epoch, column));
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.1f", epoch.seconds());
    row.insert(row.end(), {seconds, FormatCount(epoch.examples_per_second())});
    table.AddRow(std::move(row));
  }
  return table.ToString();
}

}  // namespace shoal
