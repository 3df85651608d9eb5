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

// What the training has come to: means of the running epochs, rates, and finished epochs.
// Plain state; not thread-safe.
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
  void StepDone(const Step& step, Time now);
  // The same, of a synchronous round: its figures count, in the order of the steps, when
  // CountBelow() says that its round is done. So sums are the same to the last bit whoever computed
  // the steps, and a cut at the beginning of a round has none of its steps.
  void StepOfRound(const Step& step, Time now);
  void CountBelow(uint64_t step);
  // The first lease of an epoch starts its clock.
  void EpochBegins(uint64_t epoch, Time now);
  // All steps of the epoch are done. Its record is kept; the test result comes later or never.
  const proto::EpochResult& CloseEpoch(uint64_t epoch, Time now);
  void SetTestResult(uint64_t epoch, double loss, const std::vector<double>& metrics);
  // The metrics that such sums over so many examples come to.
  std::vector<double> MetricsOf(const std::vector<double>& metric_sums, uint64_t examples) const {
    return Figures(metrics_, metric_sums, static_cast<double>(examples));
  }
  // Epochs from `epoch` on did not happen (a restore went back), nor did their steps.
  void Rewind(uint64_t epoch);

  // A cut at `step` begins, before any step from there on is done: what is done below it, in
  // `epoch`, that of the last step below it, is summed up apart from now on.
  void BeginCut(uint64_t step, uint64_t epoch);
  // What has come of that so far.
  Manifest::EpochSums CutSums(Time now) const;
  // Goes on with an epoch, of which nothing is known here, from where a cut was.
  void Resume(uint64_t epoch, const Manifest::EpochSums& sums, Time now);

  // Loss and metrics of epoch `running` so far once a step of it is done, else of the newest closed
  // epoch (the last one is closed while it is evaluated); none before the first step of all.
  std::optional<proto::EpochResult> Latest(uint64_t running) const;
  // Over the running epoch so far; 0 before its first step.
  double loss(uint64_t epoch) const;
  std::vector<double> metrics(uint64_t epoch) const;
  // When the newest step was done; the beginning of time before the first.
  Time last_step_at() const { return recent_.empty() ? Time{} : recent_.back().at; }
  // Over the last seconds.
  double steps_per_second(Time now) const;
  double examples_per_second(Time now) const;
  const std::map<uint64_t, proto::EpochResult>& history() const { return history_; }
  const std::vector<std::string>& metric_names() const { return metric_names_; }
  int metric_sum_count() const { return metric_sum_count_; }

  // Takes the epochs below `epoch`, of an earlier coordinator, that are not known here, and what it
  // has evaluated of those that are: it may have done so after they were read.
  void Restore(const std::vector<proto::EpochResult>& epochs, uint64_t epoch);

 private:
  using Metrics = google::protobuf::RepeatedPtrField<proto::MetricValue>;

  // As many as there are names.
  void SetMetrics(const std::vector<double>& values, Metrics* out) const;

  struct Sums {
    uint64_t examples = 0;
    double loss = 0;
    std::vector<double> metrics;  // sums, of one metric after the other
    Time began{};
  };
  // It was done just now.
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
  std::map<uint64_t, Step> of_rounds_;  // done, and not counted yet
  CutSoFar cut_;
  std::map<uint64_t, proto::EpochResult> history_;
  std::deque<Sample> recent_;  // steps of the last seconds, oldest first
  uint64_t recent_examples_ = 0;
};

}  // namespace shoal
