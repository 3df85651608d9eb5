#include "worker/compute/metrics.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

int64_t ArgMax(const float* row, int64_t length) {
  return std::max_element(row, row + length) - row;
}

// The metric of one row: the predictions along the last axis and their target.
double RowMetric(Metric metric, const float* prediction, const float* target, int64_t length) {
  double sum = 0;
  switch (metric) {
    case Metric::kSparseCategoricalAccuracy:
      return ArgMax(prediction, length) == static_cast<int64_t>(*target) ? 1 : 0;
    case Metric::kCategoricalAccuracy:
      return ArgMax(prediction, length) == ArgMax(target, length) ? 1 : 0;
    case Metric::kBinaryAccuracy:
      for (int64_t i = 0; i < length; ++i) sum += (prediction[i] > 0.5f ? 1.0f : 0.0f) == target[i];
      break;
    case Metric::kMeanSquaredError:
      for (int64_t i = 0; i < length; ++i) {
        const double difference = double{prediction[i]} - target[i];
        sum += difference * difference;
      }
      break;
    case Metric::kMeanAbsoluteError:
      for (int64_t i = 0; i < length; ++i) sum += std::abs(double{prediction[i]} - target[i]);
      break;
  }
  return sum / length;
}

// Names as in keras.metrics, without the class names, which are the same in camel case.
const std::map<std::string, Metric>& NamedMetrics() {
  static const auto& names = *new std::map<std::string, Metric>{
      {"sparse_categorical_accuracy", Metric::kSparseCategoricalAccuracy},
      {"categorical_accuracy", Metric::kCategoricalAccuracy},
      {"binary_accuracy", Metric::kBinaryAccuracy},
      {"mean_squared_error", Metric::kMeanSquaredError},
      {"mse", Metric::kMeanSquaredError},
      {"mean_absolute_error", Metric::kMeanAbsoluteError},
      {"mae", Metric::kMeanAbsoluteError}};
  return names;
}

// "SparseCategoricalAccuracy" -> "sparse_categorical_accuracy", "MSE" -> "mse".
std::string ToSnakeCase(const std::string& name) {
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = std::isupper(static_cast<unsigned char>(name[i]));
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1]));
    if (upper && after_lower) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return snake;
}

bool HasClassIds(const Loss& loss) { return loss.target() == Loss::Target::kClassNumber; }

// keras.src.trainers.compile_utils.get_metric
Metric Accuracy(const Loss& loss, const Shape& output_shape) {
  if (output_shape.size() < 2 || output_shape.back() == 1) return Metric::kBinaryAccuracy;
  return HasClassIds(loss) ? Metric::kSparseCategoricalAccuracy : Metric::kCategoricalAccuracy;
}

}  // namespace

double MetricSum(Metric metric, const Shape& shape, std::span<const float> prediction,
                 std::span<const float> target) {
  if (prediction.empty()) return 0;
  const int64_t length = shape.size() > 1 ? shape.back() : 1;
  const int64_t rows = static_cast<int64_t>(prediction.size()) / length;
  const int64_t target_stride = static_cast<int64_t>(target.size()) / rows;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += RowMetric(metric, prediction.data() + row * length, target.data() + row * target_stride,
                     length);
  }
  return sum * shape[0] / rows;
}

absl::Status CheckLabels(const Batch& batch, int64_t classes) {
  const std::span<const float> labels = batch.target;
  for (size_t i = 0; i < labels.size(); ++i) {
    // A comparison that not-a-number fails too.
    const bool valid = labels[i] >= 0 && labels[i] < classes && labels[i] == std::floor(labels[i]);
    if (valid) continue;
    const size_t example = i / (labels.size() / batch.examples);
    const std::string which = example < batch.indices.size()
                                  ? absl::StrCat(batch.target_file, ": example ",
                                                 batch.indices[example], ", counted from 0,")
                                  : absl::StrCat("example ", example, " of the batch");
    return absl::InvalidArgumentError(absl::StrCat(
        which, " has the label ", labels[i], "; the model has ", classes,
        classes == 1 ? " output" : " outputs",
        ", one per class, so that a label must be a whole number from 0 to ", classes - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<Metric> ResolveMetric(const std::string& name, const Loss& loss,
                                     const Shape& output_shape) {
  const std::string snake = ToSnakeCase(name);
  if (snake == "accuracy" || snake == "acc") return Accuracy(loss, output_shape);
  const auto found = NamedMetrics().find(snake);
  if (found == NamedMetrics().end()) {
    std::vector<std::string> known = {"accuracy"};
    for (const auto& [metric_name, metric] : NamedMetrics()) known.push_back(metric_name);
    const std::string nearest = NearestName(name, known);
    std::string message = absl::StrCat("metric \"", name, "\" is not known");
    if (!nearest.empty()) absl::StrAppend(&message, "; did you mean \"", nearest, "\"?");
    absl::StrAppend(&message, " There are");
    for (const std::string& known_name : known) absl::StrAppend(&message, " ", known_name);
    return absl::InvalidArgumentError(message);
  }
  const bool takes_class_ids = found->second == Metric::kSparseCategoricalAccuracy;
  const bool single = output_shape.size() < 2 || output_shape.back() == 1;
  if (takes_class_ids != HasClassIds(loss) && !single) {
    return absl::InvalidArgumentError(absl::StrCat(
        "metric \"", name, "\" takes ", takes_class_ids ? "class ids" : "a value per output",
        " as target, but the loss takes ", takes_class_ids ? "a value per output" : "class ids",
        "; \"accuracy\" picks the one that fits"));
  }
  return found->second;
}

}  // namespace shoal
