// Keras's AUC (keras/src/metrics/confusion_metrics.py): the area under a curve through the points
// of `num_thresholds` thresholds. They are evenly spread over [0, 1], the first a little below and
// the last a little above. The sums count the outputs between adjacent thresholds, separately for
// positive and negative targets. Keras's confusion counts follow from them.
#include <algorithm>
#include <cmath>

#include "common/json/keras_object.h"
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

double Ratio(double a, double b) { return b == 0 ? 0 : a / b; }

// Values of "summation_method", in the order of its names.
enum class Summation { kInterpolation, kMinoring, kMajoring };

class Auc : public Metric {
 public:
  explicit Auc(KerasOptions& options)
      : Metric(options),
        thresholds_(options.Integer("num_thresholds", 200, {2, 2000})),
        precision_recall_(options.OneOf("curve", {"ROC", "PR"}, 0) == 1),
        summation_(static_cast<Summation>(
            options.OneOf("summation_method", {"interpolation", "minoring", "majoring"}, 0))),
        from_logits_(options.Flag("from_logits", false)) {
    RejectUnlessFalse(options.given(), "multi_label", "AUC of each label");
    for (const char* key : {"thresholds", "num_labels", "label_weights"}) {
      RejectUnlessNull(options.given(), key, "AUC with thresholds or labels of its own");
    }
  }

  // Counts between thresholds i and i + 1: first the positives, in the second half the negatives.
  int sum_count() const override { return static_cast<int>(2 * thresholds_); }

  void Add(const PredictedBatch& batch, std::span<double> sums) const override {
    const auto last = static_cast<float>(thresholds_ - 1);
    const size_t of_example = batch.prediction.size() / static_cast<size_t>(batch.shape[0]);
    for (size_t i = 0; i < batch.prediction.size(); ++i) {
      float p = batch.prediction[i];  // float, so that products are computed in float32 as in Keras
      if (from_logits_) p = 1 / (1 + std::exp(-p));
      // Not-a-number counts as the lowest prediction.
      const float bucket = p > 0 ? std::ceil(std::min(p, 1.0f) * last) - 1 : 0;
      const size_t place = static_cast<size_t>(std::max(bucket, 0.0f));
      sums[place + (batch.target[i] != 0 ? 0 : thresholds_)] +=
          batch.weight(static_cast<int64_t>(i / of_example));
    }
  }

  double Result(std::span<const double> sums, double) const override {
    std::vector<double> tp = Above(sums.first(thresholds_));
    std::vector<double> fp = Above(sums.subspan(thresholds_));
    const double positives = tp[0], negatives = fp[0];
    if (precision_recall_ && summation_ == Summation::kInterpolation) {
      return InterpolatedPrecisionRecall(tp, fp, positives);
    }
    std::vector<double> x, y;
    for (size_t i = 0; i < thresholds_; ++i) {
      const double recall = Ratio(tp[i], positives);
      x.push_back(precision_recall_ ? recall : Ratio(fp[i], negatives));
      y.push_back(precision_recall_ ? Ratio(tp[i], tp[i] + fp[i]) : recall);
    }
    double area = 0;
    for (size_t i = 0; i + 1 < thresholds_; ++i) {
      const double height = summation_ == Summation::kInterpolation ? (y[i] + y[i + 1]) / 2
                            : summation_ == Summation::kMinoring    ? std::min(y[i], y[i + 1])
                                                                    : std::max(y[i], y[i + 1]);
      area += (x[i] - x[i + 1]) * height;
    }
    return area;
  }

 private:
  // The counts above each threshold.
  static std::vector<double> Above(std::span<const double> between) {
    std::vector<double> above(between.begin(), between.end());
    for (size_t i = above.size() - 1; i > 0; --i) above[i - 1] += above[i];
    return above;
  }

  // AUC.interpolate_pr_auc (Davis and Goadrich, "The relationship between precision-recall and ROC
  // curves").
  double InterpolatedPrecisionRecall(const std::vector<double>& tp, const std::vector<double>& fp,
                                     double positives) const {
    double area = 0;
    for (size_t i = 0; i + 1 < thresholds_; ++i) {
      const double above = tp[i] + fp[i], next = tp[i + 1] + fp[i + 1];
      const double slope = Ratio(tp[i] - tp[i + 1], above - next);
      const double intercept = tp[i + 1] - slope * next;
      const double ratio = above > 0 && next > 0 ? above / next : 1;
      area += Ratio(slope * (tp[i] - tp[i + 1] + intercept * std::log(ratio)), positives);
    }
    return area;
  }

  const size_t thresholds_;
  const bool precision_recall_;
  const Summation summation_;
  const bool from_logits_;
};

}  // namespace

std::unique_ptr<Metric> MakeAUCMetric(KerasOptions& options) {
  return std::make_unique<Auc>(options);
}

}  // namespace shoal
