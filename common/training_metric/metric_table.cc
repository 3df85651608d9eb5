#include "common/training_metric/metric_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/snake_case.h"
#include "common/json/keras_object.h"

// Every metric, a line each: Keras's class, and the short name that Keras has for it.
// MakeCLASSMetric stands in the file of its name.
#define SHOAL_METRICS(METRIC)                 \
  METRIC(Accuracy, "acc")                     \
  METRIC(AUC, "")                             \
  METRIC(BinaryAccuracy, "")                  \
  METRIC(CategoricalAccuracy, "")             \
  METRIC(MeanAbsoluteError, "mae")            \
  METRIC(MeanAbsolutePercentageError, "mape") \
  METRIC(MeanSquaredError, "mse")             \
  METRIC(MeanSquaredLogarithmicError, "msle") \
  METRIC(Precision, "")                       \
  METRIC(Recall, "")                          \
  METRIC(RootMeanSquaredError, "")            \
  METRIC(SparseCategoricalAccuracy, "")       \
  METRIC(SparseTopKCategoricalAccuracy, "")   \
  METRIC(TopKCategoricalAccuracy, "")

namespace shoal {

#define SHOAL_DECLARE_METRIC(CLASS, SHORT) \
  std::unique_ptr<Metric> Make##CLASS##Metric(KerasOptions&);
SHOAL_METRICS(SHOAL_DECLARE_METRIC)
#undef SHOAL_DECLARE_METRIC

namespace {

#define SHOAL_METRIC_LINE(CLASS, SHORT) {#CLASS, SHORT, Make##CLASS##Metric},
constexpr MetricType kMetricTypes[] = {SHOAL_METRICS(SHOAL_METRIC_LINE)};
#undef SHOAL_METRIC_LINE

}  // namespace

const MetricType* FindMetricType(const std::string& name) {
  const std::string bare = absl::StrReplaceAll(name, {{"_", ""}});
  if (bare.empty()) return nullptr;
  for (const MetricType& type : kMetricTypes) {
    if (absl::EqualsIgnoreCase(bare, type.class_name)) return &type;
    if (absl::EqualsIgnoreCase(bare, type.short_name)) return &type;
  }
  return nullptr;
}

std::string KnownAs(const std::string& name) {
  struct Other {
    const char* elsewhere;
    const char* here;
  };
  constexpr Other kOthers[] = {
      {"rmse", "RootMeanSquaredError"},
      {"rocauc", "AUC"},
      {"aucroc", "AUC"},
      {"auroc", "AUC"},
      {"top1", "accuracy"},
      {"top5", "TopKCategoricalAccuracy"},
      {"top5accuracy", "TopKCategoricalAccuracy"},
      {"topkaccuracy", "TopKCategoricalAccuracy"},
      {"sensitivity", "Recall"},
      {"tpr", "Recall"},
      {"l1", "MeanAbsoluteError"},
      {"l2", "MeanSquaredError"},
      {"sparseaccuracy", "SparseCategoricalAccuracy"},
  };
  const std::string bare = absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"_", ""}, {"-", ""}}));
  for (const Other& other : kOthers) {
    if (bare == other.elsewhere) return other.here;
  }
  return "";
}

std::vector<std::string> MetricNames() {
  std::vector<std::string> names;
  for (const MetricType& type : kMetricTypes) names.push_back(SnakeCase(type.class_name));
  return names;
}

std::vector<std::string> MetricDocs() {
  std::vector<std::string> rows;
  for (const MetricType& type : kMetricTypes) {
    JsonErrors errors("");
    KerasOptions options(KerasObject{}, &errors);
    type.make(options);
    std::string names = absl::StrCat("`", SnakeCase(type.class_name), "`");
    if (*type.short_name != '\0') absl::StrAppend(&names, ", `", type.short_name, "`");
    const std::string described = absl::StrJoin(options.descriptions(), ", ");
    rows.push_back(absl::StrCat("| `", type.class_name, "` | ", names, " | ", described,
                                described.empty() ? "|" : " |"));
  }
  return rows;
}

}  // namespace shoal
