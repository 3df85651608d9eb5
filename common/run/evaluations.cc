#include "common/run/evaluations.h"

#include <cmath>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/text/printable.h"
#include "common/files/durable_file.h"
#include "common/run/history.h"

namespace shoal {
namespace {

constexpr uint64_t kMaxEvaluationsBytes = 64 << 20;
constexpr size_t kMaxQuotedBytes = 200;  // of an invalid line, in the message about it
constexpr double kMax = 1e15;            // doubles below it represent every whole number

std::optional<uint64_t> Whole(double value) {
  // Also false for NaN.
  if (!(value >= 0 && value < kMax && value == std::floor(value))) return std::nullopt;
  return static_cast<uint64_t>(value);
}

// Returns false if the column does not accept the value.
bool SetField(absl::string_view column, double value, CheckpointResult* result) {
  const std::optional<uint64_t> whole = Whole(value);
  if (column == "step") {
    result->step = whole.value_or(0);
    return whole.has_value();
  }
  if (column == "epoch") {
    result->epoch = whole.value_or(1) - 1;
    return whole.value_or(0) > 0;
  }
  if (column == "examples") {
    result->examples = whole.value_or(0);
    return whole.has_value();
  }
  if (column == "seconds") {
    result->seconds = value;
  } else if (absl::ConsumePrefix(&column, kTestColumnPrefix)) {
    if (column == "loss") {
      result->loss = value;
    } else {
      result->metrics.emplace_back(column, value);
    }
  }
  return true;
}

// The text in double quotes, for a message.
std::string QuotedForMessage(absl::string_view text) {
  return absl::StrCat("\"", Printable({text.data(), text.size()}, kMaxQuotedBytes), "\"");
}

absl::StatusOr<CheckpointResult> ParseLine(const std::vector<std::string>& columns,
                                           absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  if (fields.size() != columns.size()) {
    return absl::DataLossError(absl::StrCat(QuotedForMessage(line), " has ", fields.size(),
                                            " of the header's ", columns.size(), " fields"));
  }
  CheckpointResult result;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (columns[i] == "checkpoint") {
      result.checkpoint = std::string(fields[i]);
      continue;
    }
    double value = 0;
    if (!absl::SimpleAtod(fields[i], &value) || !SetField(columns[i], value, &result)) {
      return absl::DataLossError(absl::StrCat("column ", QuotedForMessage(columns[i]), ": ",
                                              QuotedForMessage(fields[i]),
                                              " is not a valid number"));
    }
  }
  if (result.checkpoint.empty())
    return absl::DataLossError(absl::StrCat(QuotedForMessage(line), " names no checkpoint"));
  return result;
}

}  // namespace

std::string NameOf(const StoredCheckpoint& checkpoint) {
  return checkpoint.directory.substr(checkpoint.directory.rfind('/') + 1);
}

std::string EvaluationsHeader(const std::vector<std::string>& metric_names) {
  std::string text = "step,epoch,val_loss";
  for (const std::string& name : metric_names) absl::StrAppend(&text, ",", kTestColumnPrefix, name);
  return text + ",seconds,examples,checkpoint\n";
}

std::string FormatEvaluationLine(const std::vector<std::string>& metric_names,
                                 const CheckpointResult& result) {
  std::string text =
      absl::StrCat(result.step, ",", result.epoch + 1, ",", ExactNumber(result.loss));
  for (const std::string& name : metric_names) {
    double value = std::nan("");
    for (const auto& [metric, figure] : result.metrics) {
      if (metric == name) value = figure;
    }
    absl::StrAppend(&text, ",", ExactNumber(value));
  }
  absl::StrAppendFormat(&text, ",%.3f,%d,%s\n", result.seconds, result.examples, result.checkpoint);
  return text;
}

absl::StatusOr<Evaluations> ReadEvaluations(const std::string& path, FileSystem* files) {
  Evaluations read;
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxEvaluationsBytes, files);
  if (absl::IsNotFound(text.status())) return read;
  if (!text.ok()) return text.status();
  std::string damage;
  std::vector<std::string> columns;
  int number = 0, left_out = 0;
  // Ignores text after the last newline. It is empty, or its writer died. The next evaluator then
  // evaluates that checkpoint again.
  const std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n');
  for (const absl::string_view line : lines) {
    if (++number == 1) {
      columns = absl::StrSplit(line, ',');
      continue;
    }
    if (line.empty() || static_cast<size_t>(number) == lines.size()) continue;
    absl::StatusOr<CheckpointResult> result = ParseLine(columns, line);
    if (result.ok()) {
      read.results.push_back(*std::move(result));
    } else if (++left_out == 1) {
      damage = absl::StrCat(path, ":", number, ": ", std::string(result.status().message()),
                            "; the line is left out");
    }
  }
  if (left_out > 1) absl::StrAppend(&damage, ", and ", left_out - 1, " more");
  if (left_out > 0) read.damage = absl::DataLossError(damage);
  return read;
}

}  // namespace shoal
