#include "common/training_metric/metric_table.h"

// Every metric in one line: Keras's class, and Keras's short name for it. The file of its name
// defines MakeCLASSMetric.
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

#define SHOAL_METRIC_LINE(CLASS, SHORT) {#CLASS, Make##CLASS##Metric, SHORT},
constexpr KerasType<std::unique_ptr<Metric>> kMetrics[] = {SHOAL_METRICS(SHOAL_METRIC_LINE)};
#undef SHOAL_METRIC_LINE

constexpr ForeignName kForeignNames[] = {
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

}  // namespace

KerasTable<std::unique_ptr<Metric>> MetricTable() { return {"a metric", kMetrics, kForeignNames}; }

}  // namespace shoal
