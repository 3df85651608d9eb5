#include "common/run/history.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

using Metrics = google::protobuf::RepeatedPtrField<proto::MetricValue>;

constexpr uint64_t kMaxHistoryBytes = 64 << 20;
constexpr double kMaxEpochs = 1e15;  // doubles below it represent every whole number
constexpr double kMaxExamples = 1e15;

// At most six digits; NaN without its sign, which has no meaning.
std::string Number(double value) {
  return std::isnan(value) ? "nan" : absl::StrFormat("%.6g", value);
}

// Appends `missing` if there is no metric with this name.
void AppendMetric(const Metrics& metrics, const std::string& name, const char* missing,
                  std::string (*format)(double), std::string* text) {
  absl::StrAppend(text, ",");
  for (const proto::MetricValue& metric : metrics) {
    if (metric.name() != name) continue;
    absl::StrAppend(text, format(metric.value()));
    return;
  }
  absl::StrAppend(text, missing);
}

void SetField(absl::string_view column, double value, proto::EpochResult* epoch) {
  if (column == "epoch") return epoch->set_epoch(static_cast<uint64_t>(value) - 1);
  if (column == "loss") return epoch->set_loss(value);
  if (column == "val_loss") return epoch->set_test_loss(value);
  if (column == "seconds") return epoch->set_seconds(value);
  if (column == "examples_per_second") return epoch->set_examples_per_second(value);
  if (column == "examples") {
    const bool counts = value >= 0 && value < kMaxExamples;  // also false for NaN
    return epoch->set_examples(counts ? static_cast<uint64_t>(value) : 0);
  }
  proto::MetricValue* metric = absl::ConsumePrefix(&column, kTestColumnPrefix)
                                   ? epoch->add_test_metrics()
                                   : epoch->add_metrics();
  metric->set_name(std::string(column));
  metric->set_value(value);
}

absl::StatusOr<proto::EpochResult> ParseEpoch(const std::vector<std::string>& columns,
                                              absl::string_view line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ',');
  if (fields.size() != columns.size()) {
    return absl::DataLossError(
        absl::StrCat("has ", fields.size(), " of the header's ", columns.size(), " fields"));
  }
  proto::EpochResult epoch;
  bool numbered = false;
  int test_fields = 0, empty_fields = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool of_test = absl::StartsWith(columns[i], kTestColumnPrefix);
    test_fields += of_test;
    empty_fields += fields[i].empty();
    if (of_test && fields[i].empty()) continue;
    double value = 0;
    if (!absl::SimpleAtod(fields[i], &value)) {
      return absl::DataLossError(
          absl::StrCat("column \"", columns[i], "\": \"", fields[i], "\" is not a number"));
    }
    if (columns[i] == "epoch") {
      // Also false for NaN.
      numbered = value >= 1 && value < kMaxEpochs && value == std::floor(value);
    }
    if (!numbered) return absl::DataLossError("does not begin with an epoch: 1, 2, ...");
    SetField(columns[i], value, &epoch);
  }
  if (empty_fields == 0 || empty_fields == test_fields) return epoch;
  return absl::DataLossError("has only half a test result");
}

}  // namespace

// Every digit counts, because readers of the file decide from test results whether the training
// continues.
std::string ExactNumber(double value) {
  if (std::isnan(value)) return "nan";
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), value).ptr};
}

std::string HistoryHeader(const std::vector<std::string>& metric_names) {
  std::string text = "epoch,loss";
  for (const std::string& name : metric_names) absl::StrAppend(&text, ",", name);
  absl::StrAppend(&text, ",val_loss");
  for (const std::string& name : metric_names) absl::StrAppend(&text, ",val_", name);
  absl::StrAppend(&text, ",seconds,examples_per_second,examples\n");
  return text;
}

HistoryLine FormatHistoryLine(const std::vector<std::string>& metric_names,
                              const proto::EpochResult& epoch) {
  HistoryLine line{epoch.epoch(), absl::StrCat(epoch.epoch() + 1, ",", Number(epoch.loss()))};
  for (const std::string& name : metric_names)
    AppendMetric(epoch.metrics(), name, "0", Number, &line.text);
  absl::StrAppend(&line.text, ",");
  if (epoch.has_test_loss()) absl::StrAppend(&line.text, ExactNumber(epoch.test_loss()));
  for (const std::string& name : metric_names)
    AppendMetric(epoch.test_metrics(), name, "", ExactNumber, &line.text);
  absl::StrAppendFormat(&line.text, ",%.3f,%.1f,%d\n", epoch.seconds(), epoch.examples_per_second(),
                        epoch.examples());
  return line;
}

absl::Status HistoryFile::Write(uint64_t from, const std::vector<HistoryLine>& lines) {
  if (from == 0) ends_.clear();
  if (from > 0 && ends_.empty()) return absl::FailedPreconditionError("not written yet");
  const auto changed = std::lower_bound(ends_.begin(), ends_.end(), std::pair(from, uint64_t{0}));
  const bool whole = changed == ends_.begin();
  const uint64_t old_end = ends_.empty() ? 0 : ends_.back().second;
  const uint64_t begin = whole ? 0 : std::prev(changed)->second;
  ends_.erase(changed, ends_.end());
  std::string text = whole ? header_ : "";
  for (const HistoryLine& line : lines) {
    text += line.text;
    ends_.emplace_back(line.epoch, begin + text.size());
  }
  const absl::Status written = [&]() -> absl::Status {
    if (whole) return ReplaceFile(path_, text, files_);
    SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           files_->Open(path_, FileSystem::Mode::kWrite));
    SHOAL_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    if (size != old_end) {
      return absl::AbortedError(absl::StrCat(path_, " has ", size, " bytes where ", old_end,
                                             " were written: another program has changed it"));
    }
    // Cuts off the old lines first. Otherwise a crash could leave a line with old and new parts.
    if (begin < old_end) SHOAL_RETURN_IF_ERROR(file->Allocate(begin));
    SHOAL_RETURN_IF_ERROR(file->WriteAt(begin, text.data(), text.size()));
    return file->Sync();
  }();
  if (!written.ok()) ends_.clear();
  return written;
}

absl::StatusOr<History> ReadHistory(const std::string& path, FileSystem* files) {
  History history;
  const absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxHistoryBytes, files);
  if (absl::IsNotFound(text.status())) return history;
  if (!text.ok()) return text.status();
  std::string damage;
  std::vector<std::string> columns;
  int number = 0, left_out = 0;
  // Ignores text after the last newline, which is empty or torn.
  const std::vector<absl::string_view> lines = absl::StrSplit(*text, '\n');
  for (const absl::string_view line : lines) {
    if (++number == 1) {
      columns = absl::StrSplit(line, ',');
      continue;
    }
    if (line.empty()) continue;
    absl::StatusOr<proto::EpochResult> epoch = static_cast<size_t>(number) == lines.size()
                                                   ? absl::DataLossError("is cut off")
                                                   : ParseEpoch(columns, line);
    if (epoch.ok()) {
      history.epochs.push_back(*std::move(epoch));
    } else if (++left_out == 1) {
      damage = absl::StrCat(path, ":", number, ": ", std::string(epoch.status().message()),
                            "; the line is left out");
    }
  }
  if (left_out > 1) absl::StrAppend(&damage, ", and ", left_out - 1, " more");
  if (left_out > 0) history.damage = absl::DataLossError(damage);
  return history;
}

}  // namespace shoal
