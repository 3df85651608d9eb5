#include "cli/display/history.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "cli/display/number_text.h"
#include "cli/display/text_table.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

std::vector<std::string> SplitFields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  if (line.ends_with(',')) fields.push_back("");
  return fields;
}

absl::Status SetField(const std::string& column, double value, proto::EpochResult* epoch) {
  static constexpr char kTest[] = "val_";  // as Keras names them
  proto::MetricValue* metric = nullptr;
  if (column == "epoch") {
    if (!(value >= 1 && value < 1e15)) return absl::DataLossError("an epoch is 1 or more");
    epoch->set_epoch(static_cast<uint64_t>(value) - 1);
  } else if (column == "loss") {
    epoch->set_loss(value);
  } else if (column == "val_loss") {
    epoch->set_test_loss(value);
  } else if (column == "seconds") {
    epoch->set_seconds(value);
  } else if (column == "examples_per_second") {
    epoch->set_examples_per_second(value);
  } else if (column.starts_with(kTest)) {
    metric = epoch->add_test_metrics();
    metric->set_name(column.substr(std::strlen(kTest)));
  } else {
    metric = epoch->add_metrics();
    metric->set_name(column);
  }
  if (metric) metric->set_value(value);
  return absl::OkStatus();
}

absl::StatusOr<proto::EpochResult> ParseEpoch(const std::vector<std::string>& columns,
                                              const std::string& line) {
  const std::vector<std::string> fields = SplitFields(line);
  if (fields.size() != columns.size()) {
    return absl::DataLossError(std::to_string(fields.size()) + " fields where the header has " +
                               std::to_string(columns.size()));
  }
  proto::EpochResult epoch;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    char* end = nullptr;
    const double value = std::strtod(fields[i].c_str(), &end);
    if (*end != '\0') {
      return absl::DataLossError("column \"" + columns[i] + "\": \"" + fields[i] +
                                 "\" is not a number");
    }
    SHOAL_RETURN_IF_ERROR(SetField(columns[i], value, &epoch));
  }
  return epoch;
}

// Of any epoch: the one that is newest may have no test result yet.
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

absl::StatusOr<std::vector<proto::EpochResult>> ReadHistory(const std::string& path) {
  std::vector<proto::EpochResult> history;
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return history;
  const std::vector<std::string> columns = SplitFields(line);
  for (int number = 2; std::getline(in, line); ++number) {
    absl::StatusOr<proto::EpochResult> epoch = ParseEpoch(columns, line);
    if (!epoch.ok()) {
      return absl::DataLossError(path + ":" + std::to_string(number) + ": " +
                                 std::string(epoch.status().message()));
    }
    history.push_back(*std::move(epoch));
  }
  return history;
}

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
