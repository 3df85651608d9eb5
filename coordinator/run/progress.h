#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/rpc/event_loop.h"
#include "common/training_metric/metric.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The progress of the training: means of the running epochs, rates, and finished epochs. Plain
// state; not thread-safe.
class Progress {
 public:
  explicit Progress(std::vector<std::shared_ptr<const Metric>> metrics)
      : metrics_(std::move(metrics)),
        metric_names_(NamesOf(metrics_)),
        metric_sum_count_(SumCount(metrics_)) {}

  // A step that was not done before.
  struct Step {
    uint64_t step = 0;
    uint64_t epoch = 0;
    uint64_t examples = 0;
    double loss_sum = 0;
    std::vector<double> metric_sums;
  };
  // Adds a done step to the sums.
  void StepDone(const Step& step, Time now);
  // Adds a done step of a synchronous round. Its sums wait until CountBelow() covers its round.
  // They are then added in step order. This makes the sums the same to the last bit, and keeps the
  // steps of a round out of a cut at its beginning.
  void StepOfRound(const Step& step, Time now);
  // Adds the waiting sums of all steps below `step`, in order.
  void CountBelow(uint64_t step);
  // Starts the clock of the epoch, at its first lease.
  void EpochBegins(uint64_t epoch, Time now);
  // All steps of the epoch are done: keeps its result. The test result comes later or never.
  const proto::EpochResult& CloseEpoch(uint64_t epoch, Time now);
  void SetTestResult(uint64_t epoch, double loss, const std::vector<double>& metrics);
  // Computes the metrics from their sums over `examples` examples.
  std::vector<double> MetricsOf(const std::vector<double>& metric_sums, uint64_t examples) const {
    return MetricResults(metrics_, metric_sums, static_cast<double>(examples));
  }
  // Drops the epochs from `epoch` on with their steps: a restore went back.
  void Rewind(uint64_t epoch);

  // A cut at `step` begins, before any step from there on is done. From now on keeps separate sums
  // of the steps below it in `epoch`, the epoch of the last step below it.
  void BeginCut(uint64_t step, uint64_t epoch);
  // Returns these sums so far.
  Manifest::EpochSums CutSums(Time now) const;
  // Continues an epoch from the sums of a cut. Requires that the epoch has no sums here.
  void Resume(uint64_t epoch, const Manifest::EpochSums& sums, Time now);

  // Returns loss and metrics of epoch `running` so far. Before its first step, returns those of the
  // newest closed epoch (the last epoch is closed while it is evaluated). None before the first
  // step of all.
  std::optional<proto::EpochResult> Latest(uint64_t running) const;
  // Means over the running epoch so far; 0 before its first step.
  double loss(uint64_t epoch) const;
  std::vector<double> metrics(uint64_t epoch) const;
  // When the newest step was done; Time{} before the first.
  Time last_step_at() const { return recent_.empty() ? Time{} : recent_.back().at; }
  // Rates over the last seconds.
  double steps_per_second(Time now) const;
  double examples_per_second(Time now) const;
  const std::map<uint64_t, proto::EpochResult>& history() const { return history_; }
  const std::vector<std::string>& metric_names() const { return metric_names_; }
  int metric_sum_count() const { return metric_sum_count_; }

  // Adds the epochs below `epoch` of an earlier coordinator that are missing here. For the others,
  // adds its test results: it may have evaluated them after they were read.
  void Restore(const std::vector<proto::EpochResult>& epochs, uint64_t epoch);

 private:
  using Metrics = google::protobuf::RepeatedPtrField<proto::MetricValue>;

  // Requires as many values as there are names.
  void SetMetrics(const std::vector<double>& values, Metrics* out) const;

  struct Sums {
    uint64_t examples = 0;
    double loss = 0;
    std::vector<double> metrics;  // sums, one metric after the other
    Time began{};
  };
  // Counts the step, done at `now`, in the rates.
  void Note(const Step& step, Time now);
  void Count(const Step& step);
  void Add(const Step& step, Sums* sums) const;
  struct CutSoFar {
    uint64_t step = 0;
    uint64_t epoch = 0;
    Sums sums;
  };
  struct Sample {
    Time at;
    uint64_t examples;
  };

  const std::vector<std::shared_ptr<const Metric>> metrics_;
  const std::vector<std::string> metric_names_;
  const int metric_sum_count_;
  std::map<uint64_t, Sums> running_;
  std::map<uint64_t, Step> of_rounds_;  // done but not counted yet
  CutSoFar cut_;
  std::map<uint64_t, proto::EpochResult> history_;
  std::deque<Sample> recent_;  // steps of the last seconds, oldest first
  uint64_t recent_examples_ = 0;
};

}  // namespace shoal
