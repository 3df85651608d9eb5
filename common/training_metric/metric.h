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

// A batch that was predicted.
struct PredictedBatch {
  Shape shape;  // of the predictions, the number of examples first
  std::span<const float> prediction;
  std::span<const float> target;        // as the loss takes it
  std::span<const float> weights = {};  // what each example counts; empty: 1

  double weight(int64_t example) const {
    return weights.empty() ? 1.0 : double{weights[static_cast<size_t>(example)]};
  }
};

// How good predictions are, as Keras configures it: a figure computed from sums over all examples,
// to which each worker adds those of its batches; so it is exactly what one machine would compute.
// Each class of Keras is one file here, made by the table in metric_table.cc; docs/contributing.md
// shows how one is added. Immutable after construction; thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;

  // What the figure is called in the status and the history: the name that the job gives, or the
  // one that Keras gives its class.
  const std::string& name() const { return name_; }
  // What MakeMetric() reads back: canonical, equal metrics give equal texts.
  const std::string& config() const { return config_; }

  // Whether examples count by their weights: of `weighted_metrics` of Keras's compile().
  bool weighted() const { return weighted_; }

  // How many numbers are summed.
  virtual int sum_count() const { return 1; }
  // Adds a batch to the sums, each example times its weight.
  virtual void Add(const PredictedBatch& batch, std::span<double> sums) const = 0;
  // The figure that sums over `examples` examples, more than none, come to; weights count as so
  // many.
  virtual double Figure(std::span<const double> sums, double examples) const {
    return sums[0] / examples;
  }

  // What Add takes the mean of over the rows of an example, where that is one of these: a device
  // computes it then. Else nothing, and the predictions are read from there.
  virtual std::optional<RowScore> row_score() const { return std::nullopt; }

  // Whether the larger figure is the better one.
  virtual bool larger_is_better() const { return true; }

  // What the metric needs the target to be, if anything.
  virtual bool Suits(Loss::Target target) const { return target != Loss::Target::kClassNumber; }

 protected:
  // Reads the options that all classes have; a class reads its own after it.
  explicit Metric(KerasOptions& options);

 private:
  friend std::unique_ptr<const Metric> ReadMetric(const nlohmann::json&, const std::string&,
                                                  JsonErrors*, bool);

  std::string name_;
  std::string config_;
  bool weighted_ = false;
};

// A metric whose figure is the mean over the examples of a number for each row of predictions,
// those along the last axis, averaged over the inner axes.
class MeanMetric : public Metric {
 public:
  void Add(const PredictedBatch& batch, std::span<double> sums) const final;

 protected:
  explicit MeanMetric(KerasOptions& options) : Metric(options) {}

  // `target` has as many elements, or one where it is the number of a class.
  virtual double OfRow(std::span<const float> prediction, const float* target) const = 0;
};

// Reads a metric that stands at `path`: a Keras config ({"class_name", "config"}) or a plain name
// ("auc"). What is wrong is added to `errors`, and what is returned then, null or not, is of no
// use.
std::unique_ptr<const Metric> ReadMetric(const nlohmann::json& value, const std::string& path,
                                         JsonErrors* errors, bool weighted = false);

// The config of `metric` under another name.
std::string ConfigNamed(const Metric& metric, const std::string& name);

// Those of Job::metrics, then those of Job::weighted_metrics.
absl::StatusOr<std::vector<std::shared_ptr<const Metric>>> MakeMetrics(
    const std::vector<std::string>& configs, const std::vector<std::string>& weighted = {});

// The metric that `metric` is for this loss and output (kBatch first): itself, or the accuracy that
// Keras picks for "accuracy". An error where the target is none for it.
absl::StatusOr<std::shared_ptr<const Metric>> MetricFor(std::shared_ptr<const Metric> metric,
                                                        const Loss& loss, const Shape& output);

// Sums of all of them, one after the other: of a weighted one that of the weights comes after its
// own.
int SumCount(const std::vector<std::shared_ptr<const Metric>>& metrics);
// Adds a batch to those sums.
void AddToSums(const std::vector<std::shared_ptr<const Metric>>& metrics,
               const PredictedBatch& batch, std::span<double> sums);
// The figures of all of them; zeros without examples.
std::vector<double> Figures(const std::vector<std::shared_ptr<const Metric>>& metrics,
                            std::span<const double> sums, double examples);
std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<const Metric>>& metrics);

}  // namespace shoal
