#include "common/training_metric/metric.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/snake_case.h"
#include "common/json/json_text.h"
#include "common/json/keras_object.h"
#include "common/training_metric/metric_table.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kMaxNameBytes = 60;
constexpr char kAccuracy[] = "accuracy";

// Whether a metric may have this name: it becomes a column of the history, next to the fixed ones.
bool IsName(const std::string& name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '@';
  };
  for (const char* taken : {"epoch", "loss", "seconds", "examples_per_second", "examples"}) {
    if (name == taken) return false;
  }
  return !name.empty() && name.size() <= kMaxNameBytes && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), allowed) && !absl::StartsWith(name, "val_");
}

// keras.src.trainers.compile_utils.get_metric
std::string AccuracyFor(const Loss& loss, const Shape& output) {
  if (output.size() < 2 || output.back() == 1) return "BinaryAccuracy";
  return loss.target() == Loss::Target::kClassNumber ? "SparseCategoricalAccuracy"
                                                     : "CategoricalAccuracy";
}

// Parses a config, or takes a plain name.
json AsJson(const std::string& config) {
  json value = json::parse(config, nullptr, false);
  return value.is_discarded() ? json(config) : value;
}

}  // namespace

Metric::Metric(KerasOptions& options) {
  // Shoal always sums in double precision.
  options.Ignore("dtype");
  // Keras 2 writes "fn" into the configs of its wrapped functions; the table reads it.
  options.Ignore("fn");
  const json* const name = options.given().Find("name");
  if (name == nullptr || name->is_null()) return;
  name_ = name->is_string() ? name->get<std::string>() : "";
  if (IsName(name_)) return;
  options.given().AddWrong(
      "name", *name,
      absl::StrCat("1 to ", kMaxNameBytes,
                   " letters, digits, \"_\", \"-\", \".\" or \"@\", the first a letter or digit, "
                   "and none of the history's own columns"));
}

void MeanMetric::Add(const PredictedBatch& batch, std::span<double> sums) const {
  if (batch.prediction.empty()) return;
  const int64_t length = batch.shape.size() > 1 ? batch.shape.back() : 1;
  const int64_t examples = batch.shape[0];
  const int64_t rows = static_cast<int64_t>(batch.prediction.size()) / length;
  const int64_t rows_of_example = rows / examples;
  const int64_t target_stride = static_cast<int64_t>(batch.target.size()) / rows;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += OfRow(batch.prediction.subspan(row * length, length),
                 batch.target.data() + row * target_stride) *
           batch.weight(row / rows_of_example);
  }
  sums[0] += sum / static_cast<double>(rows_of_example);
}

std::unique_ptr<const Metric> ReadMetric(const json& value, const std::string& path,
                                         JsonErrors* errors, bool weighted) {
  auto read = MetricTable().Read(value, path, errors);
  if (!read.has_value()) return nullptr;
  std::unique_ptr<Metric> metric = std::move(read->made);
  const bool picked = absl::EqualsIgnoreCase(read->class_name, kAccuracy);
  if (metric->name_.empty()) {
    const bool by_class = read->plain_name.empty() || picked;
    metric->name_ = by_class ? SnakeCase(read->class_name) : read->plain_name;
  }
  metric->weighted_ = weighted;
  read->canonical["config"]["name"] = metric->name_;
  metric->config_ = picked && metric->name_ == kAccuracy ? kAccuracy : read->canonical.dump();
  return metric;
}

std::string ConfigNamed(const Metric& metric, const std::string& name) {
  json config = AsJson(metric.config());
  if (config.is_string()) config = {{"class_name", "Accuracy"}};
  config["config"]["name"] = name;
  return config.dump();
}

absl::StatusOr<std::vector<std::shared_ptr<const Metric>>> MakeMetrics(
    const std::vector<std::string>& configs, const std::vector<std::string>& weighted) {
  std::vector<std::shared_ptr<const Metric>> metrics;
  JsonErrors errors("");
  for (size_t i = 0; i < configs.size(); ++i) {
    metrics.push_back(ReadMetric(AsJson(configs[i]), JsonPath("$.metrics", i), &errors));
  }
  for (size_t i = 0; i < weighted.size(); ++i) {
    metrics.push_back(ReadMetric(AsJson(weighted[i]), JsonPath("$.weighted_metrics", i), &errors,
                                 /*weighted=*/true));
  }
  SHOAL_RETURN_IF_ERROR(errors.ToStatus());
  return metrics;
}

absl::StatusOr<std::shared_ptr<const Metric>> MetricFor(std::shared_ptr<const Metric> metric,
                                                        const Loss& loss, const Shape& output) {
  if (const json config = AsJson(metric->config());
      config.is_string() || config["class_name"] == "Accuracy") {
    JsonErrors errors("");
    const json of_class = {{"class_name", AccuracyFor(loss, output)},
                           {"config", {{"name", metric->name()}}}};
    return ReadMetric(of_class, "$", &errors, metric->weighted());
  }
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
  for (const auto& metric : metrics) count += metric->sum_count() + metric->weighted();
  return count;
}

void AddToSums(const std::vector<std::shared_ptr<const Metric>>& metrics,
               const PredictedBatch& batch, std::span<double> sums) {
  PredictedBatch unweighted = batch;
  unweighted.weights = {};
  for (const auto& metric : metrics) {
    const auto count = static_cast<size_t>(metric->sum_count());
    metric->Add(metric->weighted() ? batch : unweighted, sums.first(count));
    sums = sums.subspan(count);
    if (!metric->weighted()) continue;
    for (int64_t i = 0; i < batch.shape[0]; ++i) sums[0] += batch.weight(i);
    sums = sums.subspan(1);
  }
}

std::vector<double> MetricResults(const std::vector<std::shared_ptr<const Metric>>& metrics,
                                  std::span<const double> sums, double examples) {
  std::vector<double> results;
  if (sums.size() < static_cast<size_t>(SumCount(metrics))) examples = 0;
  for (const auto& metric : metrics) {
    if (examples <= 0) {
      results.push_back(0);
      continue;
    }
    const auto count = static_cast<size_t>(metric->sum_count());
    const std::span<const double> own = sums.first(count);
    sums = sums.subspan(count);
    double counted = examples;
    if (metric->weighted()) {
      counted = sums[0];
      sums = sums.subspan(1);
    }
    results.push_back(counted > 0 ? metric->Result(own, counted) : 0);
  }
  return results;
}

std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<const Metric>>& metrics) {
  std::vector<std::string> names;
  for (const auto& metric : metrics) names.push_back(metric->name());
  return names;
}

}  // namespace shoal
