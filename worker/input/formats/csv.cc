// CSV of numbers. Opening reads it once into a table of float32. This finds all errors before the
// training and gives access to rows by number.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/json/json_errors.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/files/decoded_stream.h"
#include "worker/input/files/file_content.h"
#include "worker/input/files/temporary_table.h"
#include "worker/input/formats/csv_reader.h"

namespace shoal {
namespace {

constexpr size_t kMaxShownBytes = 40;
constexpr size_t kMaxShownNames = 20;

// The columns of the files in a row of the table, in the table's order.
struct Columns {
  std::vector<std::string> names;  // all columns of the files
  std::vector<size_t> chosen;      // the features' columns, then the label's, if any
};

// Consecutive rows of features, each with a label, if any.
class CsvTable : public Dataset {
 public:
  CsvTable(std::string source, std::vector<Feature> features, bool labelled, TemporaryTable table)
      : source_(std::move(source)),
        features_(std::move(features)),
        label_shape_(labelled ? Shape{} : kNoLabel),
        table_(std::move(table)),
        row_numbers_(labelled ? 1 : 0) {
    for (const Feature& feature : features_) row_numbers_ += ElementCount(feature.shape);
  }

  uint64_t size() const override { return table_.size() / (row_numbers_ * sizeof(float)); }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override { return label_shape_; }
  std::string LabelSource() const override { return source_; }

  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    SHOAL_RETURN_IF_ERROR(ReadLabel(index, label));
    const float* number = Row(index);
    for (size_t i = 0; i < features.size(); ++i) {
      const std::span<float> values = features[i].floats;
      std::copy_n(number, values.size(), values.data());
      number += values.size();
      if (absl::Status status = CheckValues(features_[i], values); !status.ok()) {
        return WithSource(absl::StrCat(source_, ": example ", index), status);
      }
    }
    return absl::OkStatus();
  }
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    if (index >= size()) {
      return absl::OutOfRangeError(
          absl::StrCat(source_, ": there is no row ", index, "; the data has ", size()));
    }
    if (!label.empty()) label[0] = Row(index)[row_numbers_ - 1];
    return absl::OkStatus();
  }

 private:
  const float* Row(uint64_t index) const {
    return reinterpret_cast<const float*>(table_.bytes().data()) + index * row_numbers_;
  }

  const std::string source_;
  const std::vector<Feature> features_;
  const Shape label_shape_;
  const TemporaryTable table_;
  size_t row_numbers_;
};

// The error for two columns with the same name, which is ambiguous.
absl::Status TwoColumns(size_t first, size_t second, const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat("columns ", first, " and ", second, ", counted from 0, are both called \"",
                   Printable(name, kMaxNameBytes), "\"; give each a name of its own"));
}

absl::StatusOr<float> ParseNumber(const std::string& field) {
  size_t begin = 0, end = field.size();
  while (begin < end && field[begin] == ' ') ++begin;
  while (end > begin && field[end - 1] == ' ') --end;
  // from_chars rejects a '+', but would accept a '-' after it.
  if (end - begin > 1 && field[begin] == '+' && field[begin + 1] != '-') ++begin;
  float number = 0;
  const auto [rest, error] = std::from_chars(field.data() + begin, field.data() + end, number);
  if (error == std::errc() && rest == field.data() + end && std::isfinite(number)) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", Printable(field, kMaxShownBytes), "\" is no number that a float32 holds"));
}

// A hint about the likely cause if the first row lacks the wanted names.
std::string HintOfHeader(const std::vector<std::string>& names) {
  if (names.size() == 1) {
    for (const char* delimiter : {";", "\t", "|", ","}) {
      if (names[0].find(delimiter) == std::string::npos) continue;
      return absl::StrCat("; are its columns divided by \"delimiter\": \"",
                          *delimiter == '\t' ? "\\t" : delimiter, "\"?");
    }
  }
  const bool numbers = std::all_of(names.begin(), names.end(),
                                   [](const std::string& name) { return ParseNumber(name).ok(); });
  return numbers ? "; if the file has no row of names, give \"header\": false" : "";
}

absl::StatusOr<size_t> FindColumn(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) {
    const auto again = std::find(found + 1, names.end(), name);
    if (again == names.end()) return static_cast<size_t>(found - names.begin());
    return TwoColumns(found - names.begin(), again - names.begin(), name);
  }
  const size_t shown = std::min(names.size(), kMaxShownNames);
  return absl::InvalidArgumentError(absl::StrCat(
      "has no column \"", name, "\"; its columns are ",
      Printable(absl::StrJoin(names.begin(), names.begin() + shown, ", "), kMaxReasonBytes),
      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "",
      HintOfHeader(names)));
}

// Rejects duplicate names if all columns are inputs. Otherwise a second column with the label's
// name would become an input. Empty names may repeat.
absl::Status CheckNamesDiffer(const std::vector<std::string>& names) {
  std::map<std::string_view, size_t> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [first, is_new] = columns.emplace(names[i], i);
    if (is_new || names[i].empty()) continue;
    return TwoColumns(first->second, i, names[i]);
  }
  return absl::OkStatus();
}

// Returns the names of the columns of a file with this first row.
std::vector<std::string> NamesOf(const DataSource& source, std::vector<std::string> first_row) {
  if (source.header) return first_row;
  for (size_t i = 0; i < first_row.size(); ++i) first_row[i] = absl::StrCat(i);
  return first_row;
}

// Chooses the columns of each feature. A feature without column names gets all columns except
// labels, weights and those of other features.
absl::StatusOr<Columns> ChooseColumns(const DataSource& source,
                                      const std::vector<DataSource::Feature>& features,
                                      std::vector<std::string> names) {
  Columns columns{.names = std::move(names)};
  const absl::StatusOr<size_t> label = FindColumn(columns.names, source.labels);
  if (!source.unlabelled) SHOAL_RETURN_IF_ERROR(label.status());
  std::set<size_t> named;
  // A column's name may be "", as the first one from pandas.
  if (label.ok() && !source.labels.empty()) named.insert(*label);
  // Weights are optional here. If they are requested, they are a feature, which is checked below.
  const auto weights = std::find(columns.names.begin(), columns.names.end(), source.weights);
  if (weights != columns.names.end() && !source.weights.empty())
    named.insert(weights - columns.names.begin());
  for (const DataSource::Feature& feature : features) {
    if (feature.from.empty()) SHOAL_RETURN_IF_ERROR(CheckNamesDiffer(columns.names));
    for (const std::string& name : feature.from) {
      SHOAL_ASSIGN_OR_RETURN(const size_t column, FindColumn(columns.names, name));
      named.insert(column);
    }
  }
  for (const DataSource::Feature& feature : features) {
    for (const std::string& name : feature.from) {
      SHOAL_ASSIGN_OR_RETURN(const size_t column, FindColumn(columns.names, name));
      columns.chosen.push_back(column);
    }
    for (size_t i = 0; i < columns.names.size() && feature.from.empty(); ++i) {
      if (!named.contains(i)) columns.chosen.push_back(i);
    }
  }
  if (!source.unlabelled) columns.chosen.push_back(*label);
  return columns;
}

class TableReader {
 public:
  TableReader(const DataSource& source, std::vector<DataSource::Feature> features)
      : source_(source), features_(std::move(features)) {}

  // Reads the rows of all files. Requires the same columns in each.
  absl::StatusOr<TemporaryTable> Read(const std::vector<std::string>& paths) {
    SHOAL_ASSIGN_OR_RETURN(TemporaryTable table, TemporaryTable::Make(paths[0]));
    for (const std::string& path : paths) {
      uint64_t size = 0;
      SHOAL_ASSIGN_OR_RETURN(const FileDescriptor file,
                             OpenRegularFile(path, source_.roots, "expected a CSV file", &size));
      SHOAL_ASSIGN_OR_RETURN(DecodedStream stream, DecodedStream::Open(file.get(), path));
      if (absl::Status status = ReadFile(stream, &table); !status.ok()) {
        // The stream's errors already begin with the path.
        return status.message().find(path) == 0 ? status : WithSource(path, status);
      }
    }
    SHOAL_RETURN_IF_ERROR(table.Finish());
    return table;
  }
  size_t chosen() const { return columns_.chosen.size(); }
  // If all columns were taken: a hint with the feature columns and how to choose others.
  std::string HintOfFeatures() const {
    if (columns_.chosen.size() < columns_.names.size()) return "";
    const size_t features = columns_.chosen.size() - (source_.unlabelled ? 0 : 1);
    std::string names;
    for (size_t i = 0; i < features && i < kMaxShownNames; ++i)
      absl::StrAppend(&names, i == 0 ? "" : ", ", columns_.names[columns_.chosen[i]]);
    if (features > kMaxShownNames) absl::StrAppend(&names, ", ...");
    return absl::StrCat(
        "; all columns are taken as features: ", Printable(names, kMaxReasonBytes),
        ". Name the features in the job or by --set 'data.training.features=[...]', for the test "
        "set by --set 'data.test.features=[...]'");
  }

 private:
  absl::Status ReadFile(DecodedStream& stream, TemporaryTable* table) {
    CsvReader reader([&stream](std::span<char> out) { return stream.Read(out); },
                     source_.delimiter[0]);
    std::vector<std::string> fields;
    SHOAL_ASSIGN_OR_RETURN(bool more, reader.Next(&fields));
    if (!more) return absl::DataLossError("has no row");
    SHOAL_RETURN_IF_ERROR(ReadHeader(fields));
    if (source_.header) {
      SHOAL_ASSIGN_OR_RETURN(more, reader.Next(&fields));
    }
    std::vector<float> row(columns_.chosen.size());
    for (bool first = true; more; first = false) {
      if (fields.size() != columns_.names.size()) {
        return absl::DataLossError(absl::StrCat(
            "line ", reader.line(), ": ", fields.size(), fields.size() == 1 ? " field" : " fields",
            "; expected ", columns_.names.size(), ", as the first row has"));
      }
      for (size_t i = 0; i < row.size(); ++i) {
        const absl::StatusOr<float> number = ParseNumber(fields[columns_.chosen[i]]);
        if (!number.ok()) {
          return absl::DataLossError(absl::StrCat(
              "line ", reader.line(), ", column ", columns_.names[columns_.chosen[i]], ": ",
              std::string(number.status().message()),
              // An error in the first row means that the column is not a feature. Later, a single
              // value may be missing.
              first ? HintOfFeatures() : "; write a number in its place, or remove the row"));
        }
        row[i] = *number;
      }
      SHOAL_RETURN_IF_ERROR(table->Append(
          std::span(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float))));
      SHOAL_ASSIGN_OR_RETURN(more, reader.Next(&fields));
    }
    return absl::OkStatus();
  }

  // Chooses or checks the columns by the first row of a file.
  absl::Status ReadHeader(const std::vector<std::string>& fields) {
    std::vector<std::string> names = NamesOf(source_, fields);
    if (!columns_.names.empty()) {
      if (names == columns_.names) return absl::OkStatus();
      return absl::DataLossError("has other columns than the first file");
    }
    SHOAL_ASSIGN_OR_RETURN(columns_, ChooseColumns(source_, features_, std::move(names)));
    return absl::OkStatus();
  }

  const DataSource& source_;
  const std::vector<DataSource::Feature> features_;
  Columns columns_;
};

// Returns the names of the columns in the first file, and sets `path` to its path.
absl::StatusOr<std::vector<std::string>> ReadNames(const DataSource& csv, std::string* path) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(csv));
  *path = paths[0];
  uint64_t size = 0;
  SHOAL_ASSIGN_OR_RETURN(const FileDescriptor file,
                         OpenRegularFile(*path, csv.roots, "expected a CSV file", &size));
  SHOAL_ASSIGN_OR_RETURN(DecodedStream stream, DecodedStream::Open(file.get(), *path));
  CsvReader reader([&stream](std::span<char> out) { return stream.Read(out); }, csv.delimiter[0]);
  std::vector<std::string> fields;
  const absl::StatusOr<bool> more = reader.Next(&fields);
  if (!more.ok()) return WithSource(*path, more.status());
  if (!*more) return absl::DataLossError(*path + ": has no row");
  return NamesOf(csv, std::move(fields));
}

}  // namespace

// Counts the rows and inspects the columns, up to the first invalid row.
absl::StatusOr<DataReport> InspectCsv(const DataSource& source) {
  struct Column {
    std::string name;
    float least = std::numeric_limits<float>::infinity();
    float most = -std::numeric_limits<float>::infinity();
    uint64_t numbers = 0;
  };
  const std::string& path = source.paths[0];
  uint64_t size = 0, rows = 0;
  SHOAL_ASSIGN_OR_RETURN(const FileDescriptor file,
                         OpenRegularFile(path, source.roots, "expected a CSV file", &size));
  SHOAL_ASSIGN_OR_RETURN(DecodedStream stream, DecodedStream::Open(file.get(), path));
  CsvReader reader([&stream](std::span<char> out) { return stream.Read(out); },
                   source.delimiter[0]);
  DataReport report;
  std::vector<Column> columns;
  std::vector<std::string> fields;
  for (;;) {
    const absl::StatusOr<bool> more = reader.Next(&fields);
    if (!more.ok()) report.AddDamage(WithSource(path, more.status()));
    if (!more.ok() || !*more) break;
    if (columns.empty()) {
      for (const std::string& field : fields) {
        columns.push_back({source.header ? field : absl::StrCat(columns.size())});
      }
      if (source.header) continue;
    }
    ++rows;
    if (fields.size() != columns.size()) {
      report.AddDamage(
          absl::DataLossError(absl::StrCat(path, ": line ", reader.line(), ": ", fields.size(),
                                           " fields; expected ", columns.size())));
      continue;
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      const absl::StatusOr<float> number = ParseNumber(fields[i]);
      if (!number.ok()) continue;
      columns[i].least = std::min(columns[i].least, *number);
      columns[i].most = std::max(columns[i].most, *number);
      ++columns[i].numbers;
    }
  }
  report.lines.push_back(absl::StrCat(rows, " rows of ", columns.size(), " columns"));
  for (const Column& column : columns) {
    report.lines.push_back(absl::StrCat(
        Printable(column.name, kMaxNameBytes), ": ",
        column.numbers == 0
            ? "no numbers"
            : absl::StrCat("from ", column.least, " to ", column.most,
                           column.numbers == rows
                               ? ""
                               : absl::StrCat("; in ", rows - column.numbers, " rows no number"))));
  }
  return report;
}

absl::StatusOr<std::vector<std::string>> ColumnsOf(const DataSource& csv) {
  std::string path;
  SHOAL_ASSIGN_OR_RETURN(std::vector<std::string> all, ReadNames(csv, &path));
  const absl::StatusOr<Columns> columns = ChooseColumns(csv, {{}}, std::move(all));
  if (!columns.ok()) return WithSource(path, columns.status());
  std::vector<std::string> names;
  for (const size_t column : columns->chosen) names.push_back(columns->names[column]);
  if (!csv.unlabelled) names.pop_back();
  return names;
}

absl::Status CheckColumns(const DataSource& csv, const std::vector<std::string>& wanted) {
  std::string path;
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadNames(csv, &path));
  for (const std::string& name : wanted) {
    if (const auto column = FindColumn(names, name); !column.ok())
      return WithSource(path, column.status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenCsv(const DataSource& source,
                                                 const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(source));
  // The columns in the order of the model's inputs.
  std::vector<DataSource::Feature> features;
  if (source.features.empty() && inputs.size() == 1) {
    features.emplace_back();
  } else {
    const auto matched = MatchFeatures(source.features, inputs);
    if (!matched.ok()) return WithSource(paths[0], matched.status());
    for (const DataSource::Feature* feature : *matched) features.push_back(*feature);
  }
  TableReader reader(source, features);
  SHOAL_ASSIGN_OR_RETURN(TemporaryTable table, reader.Read(paths));
  if (table.size() == 0) return absl::DataLossError(paths[0] + ": has no row of numbers");
  const bool labelled = !source.unlabelled;
  std::vector<Feature> shaped = inputs;
  size_t unnamed = reader.chosen() - (labelled ? 1 : 0);
  for (const DataSource::Feature& feature : features) unnamed -= feature.from.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto columns =
        static_cast<int64_t>(features[i].from.empty() ? unnamed : features[i].from.size());
    absl::StatusOr<Shape> shape = ShapeForInput(
        columns == 1 && inputs[i].shape.empty() ? Shape{} : Shape{columns}, inputs[i], paths[0]);
    if (!shape.ok()) {
      return absl::Status(shape.status().code(), absl::StrCat(std::string(shape.status().message()),
                                                              reader.HintOfFeatures()));
    }
    shaped[i].shape = *std::move(shape);
  }
  return std::make_unique<CsvTable>(
      paths.size() == 1 ? paths[0] : absl::StrCat(paths[0], " and ", paths.size() - 1, " more"),
      std::move(shaped), labelled, std::move(table));
}

}  // namespace shoal
