#include "common/training_metric/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/snake_case.h"
#include "common/base/status_macros.h"
#include "common/json/json_text.h"
#include "common/json/keras_object.h"
#include "common/training_metric/metric_table.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kMostNameBytes = 60;
constexpr char kAccuracy[] = "accuracy";

// Names are columns of the history, beside its own.
bool IsName(const std::string& name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '@';
  };
  for (const char* taken : {"epoch", "loss", "seconds", "examples_per_second"}) {
    if (name == taken) return false;
  }
  return !name.empty() && name.size() <= kMostNameBytes && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), allowed) && !absl::StartsWith(name, "val_");
}

// keras.src.trainers.compile_utils.get_metric
std::string AccuracyFor(const Loss& loss, const Shape& output) {
  if (output.size() < 2 || output.back() == 1) return "BinaryAccuracy";
  return loss.target() == Loss::Target::kClassNumber ? "SparseCategoricalAccuracy"
                                                     : "CategoricalAccuracy";
}

std::shared_ptr<const Metric> OfClass(const std::string& class_name) {
  JsonErrors errors("");
  return ReadMetric(class_name, "$", &errors);
}

}  // namespace

Metric::Metric(KerasOptions& options) {
  // Sums are numbers of double precision whatever Keras computes in.
  options.Ignore("dtype");
  // "fn" is what Keras 2 writes into the configs of its wrapped functions.
  options.Ignore("fn");
  const json* const name = options.given().Find("name");
  if (name == nullptr || name->is_null()) return;
  name_ = name->is_string() ? name->get<std::string>() : "";
  if (IsName(name_)) return;
  options.given().AddWrong(
      "name", *name,
      absl::StrCat("1 to ", kMostNameBytes,
                   " letters, digits, \"_\", \"-\", \".\" or \"@\", the first a letter or digit, "
                   "and none of the history's own columns"));
}

void MeanMetric::Add(const PredictedBatch& batch, std::span<double> sums) const {
  if (batch.prediction.empty()) return;
  const int64_t length = batch.shape.size() > 1 ? batch.shape.back() : 1;
  const int64_t rows = static_cast<int64_t>(batch.prediction.size()) / length;
  const int64_t target_stride = static_cast<int64_t>(batch.target.size()) / rows;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += OfRow(batch.prediction.subspan(row * length, length),
                 batch.target.data() + row * target_stride);
  }
  sums[0] += sum * static_cast<double>(batch.shape[0]) / static_cast<double>(rows);
}

std::unique_ptr<const Metric> ReadMetric(const json& value, const std::string& path,
                                         JsonErrors* errors) {
  auto read = MetricTable().Read(value, path, errors);
  if (!read.has_value()) return nullptr;
  std::unique_ptr<Metric> metric = std::move(read->made);
  const bool picked = absl::EqualsIgnoreCase(read->class_name, kAccuracy);
  if (metric->name_.empty()) {
    metric->name_ = value.is_string() && !picked ? read->given_name : SnakeCase(read->class_name);
  }
  read->canonical["config"]["name"] = metric->name_;
  metric->config_ = picked ? kAccuracy : read->canonical.dump();
  return metric;
}

absl::StatusOr<std::vector<std::shared_ptr<const Metric>>> MakeMetrics(
    const std::vector<std::string>& configs) {
  std::vector<std::shared_ptr<const Metric>> metrics;
  JsonErrors errors("");
  for (const std::string& config : configs) {
    json value = json::parse(config, nullptr, false);
    if (value.is_discarded()) value = config;
    metrics.push_back(ReadMetric(value, JsonPath("$.metrics", metrics.size()), &errors));
  }
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return metrics;
}

absl::StatusOr<std::shared_ptr<const Metric>> MetricFor(std::shared_ptr<const Metric> metric,
                                                        const Loss& loss, const Shape& output) {
  if (metric->config() == kAccuracy) return OfClass(AccuracyFor(loss, output));
  const bool single = output.size() < 2 || output.back() == 1;
  if (single || metric->Suits(loss.target())) return metric;
  const bool has_numbers = loss.target() == Loss::Target::kClassNumber;
  return absl::InvalidArgumentError(absl::StrCat(
      "metric \"", metric->name(), "\" takes ", has_numbers ? "a value per output" : "class ids",
      " as target, but the loss ", loss.class_name(), " takes ",
      has_numbers ? "class ids" : "a value per output", "; \"accuracy\" picks the one that fits"));
}

int SumCount(const std::vector<std::shared_ptr<const Metric>>& metrics) {
  int count = 0;
  for (const auto& metric : metrics) count += metric->sum_count();
  return count;
}

std::vector<double> Figures(const std::vector<std::shared_ptr<const Metric>>& metrics,
                            std::span<const double> sums, double examples) {
  std::vector<double> figures;
  for (const auto& metric : metrics) {
    const auto count = static_cast<size_t>(metric->sum_count());
    const bool any = examples > 0 && sums.size() >= count;
    figures.push_back(any ? metric->Figure(sums.first(count), examples) : 0);
    sums = any ? sums.subspan(count) : sums;
  }
  return figures;
}

std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<const Metric>>& metrics) {
  std::vector<std::string> names;
  for (const auto& metric : metrics) names.push_back(metric->name());
  return names;
}

}  // namespace shoal
