#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/json/json_errors.h"
#include "common/json/keras_options.h"
#include "common/model/loss.h"
#include "common/training_metric/row_score.h"

namespace shoal {

// A batch with its predictions.
struct PredictedBatch {
  Shape shape;  // of the predictions; the first axis is the examples
  std::span<const float> prediction;
  std::span<const float> target;        // as for the loss
  std::span<const float> weights = {};  // of the examples; empty: all 1

  double weight(int64_t example) const {
    return weights.empty() ? 1.0 : double{weights[static_cast<size_t>(example)]};
  }
};

// Measures predictions, as Keras configures it: a figure computed from sums over all examples. Each
// worker adds its batches to the sums, so the figure is exactly that of a single machine. Each
// class of Keras is one file here, made by the table in metric_table.cc;
// docs/contributing/adding-a-kind.md shows how to add one. Immutable after construction;
// thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;

  // The name of the figure in the status and the history: the job's, or Keras's default for the
  // class.
  const std::string& name() const { return name_; }
  // The text that MakeMetric() reads. Canonical: equal metrics give equal texts.
  const std::string& config() const { return config_; }

  // Whether examples count by their weights (`weighted_metrics` of Keras's compile()).
  bool weighted() const { return weighted_; }

  // The number of sums.
  virtual int sum_count() const { return 1; }
  // Adds a batch to the sums, each example times its weight.
  virtual void Add(const PredictedBatch& batch, std::span<double> sums) const = 0;
  // Returns the figure for sums over `examples` examples, which must be more than 0. With weights,
  // `examples` is the sum of the weights.
  virtual double Result(std::span<const double> sums, double examples) const {
    return sums[0] / examples;
  }

  // The per-row score whose mean Add sums, if a device can compute it. Otherwise nothing, and the
  // host reads the predictions from the device.
  virtual std::optional<RowScore> row_score() const { return std::nullopt; }

  // Whether larger figures are better.
  virtual bool larger_is_better() const { return true; }

  // Whether the metric can use this kind of target.
  virtual bool Suits(Loss::Target target) const { return target != Loss::Target::kClassNumber; }

 protected:
  // Reads the options that all classes have. Subclasses read theirs afterwards.
  explicit Metric(KerasOptions& options);

 private:
  friend std::unique_ptr<const Metric> ReadMetric(const nlohmann::json&, const std::string&,
                                                  JsonErrors*, bool);

  std::string name_;
  std::string config_;
  bool weighted_ = false;
};

// A metric whose figure is the mean over the examples. An example's value is the mean of OfRow over
// its rows of predictions, which lie along the last axis.
class MeanMetric : public Metric {
 public:
  void Add(const PredictedBatch& batch, std::span<double> sums) const final;

 protected:
  explicit MeanMetric(KerasOptions& options) : Metric(options) {}

  // The value of one row. `target` has as many elements as `prediction`, or one if it is a class
  // number.
  virtual double OfRow(std::span<const float> prediction, const float* target) const = 0;
};

// Reads the metric at `path`: a Keras config ({"class_name", "config"}) or a plain name ("auc").
// Adds problems to `errors`; the result, null or not, is then meaningless.
std::unique_ptr<const Metric> ReadMetric(const nlohmann::json& value, const std::string& path,
                                         JsonErrors* errors, bool weighted = false);

// The config of `metric` with another name.
std::string ConfigNamed(const Metric& metric, const std::string& name);

// Makes the metrics of Job::metrics, then those of Job::weighted_metrics.
absl::StatusOr<std::vector<std::shared_ptr<const Metric>>> MakeMetrics(
    const std::vector<std::string>& configs, const std::vector<std::string>& weighted = {});

// Returns the metric to use for this loss and output (kBatch first): `metric` itself, or the
// accuracy that Keras picks for "accuracy". An error if the metric cannot use the target.
absl::StatusOr<std::shared_ptr<const Metric>> MetricFor(std::shared_ptr<const Metric> metric,
                                                        const Loss& loss, const Shape& output);

// The number of sums of all metrics. They lie one after the other; a weighted metric also has the
// sum of the weights, after its own.
int SumCount(const std::vector<std::shared_ptr<const Metric>>& metrics);
// Adds a batch to those sums.
void AddToSums(const std::vector<std::shared_ptr<const Metric>>& metrics,
               const PredictedBatch& batch, std::span<double> sums);
// Returns the results of all metrics; zeros without examples.
std::vector<double> MetricResults(const std::vector<std::shared_ptr<const Metric>>& metrics,
                                  std::span<const double> sums, double examples);
std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<const Metric>>& metrics);

}  // namespace shoal
