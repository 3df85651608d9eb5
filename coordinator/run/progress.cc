#include "coordinator/run/progress.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr Time kRateWindow = std::chrono::seconds(5);

}  // namespace

void Progress::StepDone(const Step& step, Time now) {
  Note(step, now);
  Count(step);
}

void Progress::StepOfRound(const Step& step, Time now) {
  Note(step, now);
  of_rounds_[step.step] = step;
}

void Progress::CountBelow(uint64_t step) {
  while (!of_rounds_.empty() && of_rounds_.begin()->first < step)
    Count(of_rounds_.extract(of_rounds_.begin()).mapped());
}

void Progress::Count(const Step& step) {
  Add(step, &running_[step.epoch]);
  if (step.step < cut_.step && step.epoch == cut_.epoch) Add(step, &cut_.sums);
}

void Progress::Note(const Step& step, Time now) {
  Sums& sums = running_[step.epoch];
  if (sums.began == Time{}) sums.began = now;
  recent_.push_back({now, step.examples});
  recent_examples_ += step.examples;
  while (recent_.front().at < now - kRateWindow) {
    recent_examples_ -= recent_.front().examples;
    recent_.pop_front();
  }
}

void Progress::Add(const Step& step, Sums* sums) const {
  sums->examples += step.examples;
  sums->loss += step.loss_sum;
  sums->metrics.resize(metric_sum_count_);
  for (size_t i = 0; i < std::min(step.metric_sums.size(), sums->metrics.size()); ++i) {
    sums->metrics[i] += step.metric_sums[i];
  }
}

void Progress::BeginCut(uint64_t step, uint64_t epoch) {
  const auto sums = running_.find(epoch);
  cut_ = {.step = step, .epoch = epoch, .sums = {}};
  if (sums != running_.end()) cut_.sums = sums->second;
}

Manifest::EpochSums Progress::CutSums(Time now) const {
  const Sums& sums = cut_.sums;
  const auto running = running_.find(cut_.epoch);
  const Time began = running != running_.end() ? running->second.began : sums.began;
  return {.examples = sums.examples,
          .loss = sums.loss,
          .metrics = sums.metrics,
          .seconds = began == Time{} ? 0 : ToSeconds(now - began)};
}

void Progress::Resume(uint64_t epoch, const Manifest::EpochSums& sums, Time now) {
  if (sums.examples == 0) return;
  Sums& running = running_[epoch];
  running = {.examples = sums.examples,
             .loss = sums.loss,
             .metrics = sums.metrics,
             .began = now - FromSeconds(sums.seconds)};
  running.metrics.resize(metric_sum_count_);
}

void Progress::EpochBegins(uint64_t epoch, Time now) {
  Sums& sums = running_[epoch];
  if (sums.began == Time{}) sums.began = now;
}

const proto::EpochResult& Progress::CloseEpoch(uint64_t epoch, Time now) {
  proto::EpochResult& result = history_[epoch];
  result.set_epoch(epoch);
  result.set_loss(loss(epoch));
  SetMetrics(metrics(epoch), result.mutable_metrics());
  const Sums& sums = running_[epoch];
  result.set_examples(sums.examples);
  // After a takeover an epoch may close without any step seen here.
  if (sums.began != Time{}) result.set_seconds(ToSeconds(now - sums.began));
  if (result.seconds() > 0)
    result.set_examples_per_second(static_cast<double>(sums.examples) / result.seconds());
  running_.erase(epoch);
  return result;
}

void Progress::SetTestResult(uint64_t epoch, double loss, const std::vector<double>& metrics) {
  proto::EpochResult& result = history_[epoch];
  result.set_epoch(epoch);
  result.set_test_loss(loss);
  SetMetrics(metrics, result.mutable_test_metrics());
}

void Progress::Rewind(uint64_t epoch) {
  running_.clear();
  of_rounds_.clear();
  cut_ = {};
  history_.erase(history_.lower_bound(epoch), history_.end());
}

std::optional<proto::EpochResult> Progress::Latest(uint64_t running) const {
  const auto sums = running_.find(running);
  if (sums != running_.end() && sums->second.examples > 0) {
    proto::EpochResult result;
    result.set_epoch(running);
    result.set_loss(loss(running));
    SetMetrics(metrics(running), result.mutable_metrics());
    return result;
  }
  if (history_.empty()) return std::nullopt;
  return history_.rbegin()->second;
}

double Progress::loss(uint64_t epoch) const {
  auto sums = running_.find(epoch);
  if (sums == running_.end() || sums->second.examples == 0) return 0;
  return sums->second.loss / static_cast<double>(sums->second.examples);
}

std::vector<double> Progress::metrics(uint64_t epoch) const {
  const auto sums = running_.find(epoch);
  if (sums == running_.end()) return MetricsOf({}, 0);
  return MetricsOf(sums->second.metrics, sums->second.examples);
}

double Progress::steps_per_second(Time now) const {
  if (recent_.size() < 2) return 0;
  const double seconds = ToSeconds(now - recent_.front().at);
  return seconds > 0 && now - recent_.back().at < kRateWindow
             ? static_cast<double>(recent_.size()) / seconds
             : 0;
}

double Progress::examples_per_second(Time now) const {
  if (recent_.size() < 2) return 0;
  const double seconds = ToSeconds(now - recent_.front().at);
  return seconds > 0 && now - recent_.back().at < kRateWindow
             ? static_cast<double>(recent_examples_) / seconds
             : 0;
}

void Progress::Restore(const std::vector<proto::EpochResult>& epochs, uint64_t epoch) {
  for (const proto::EpochResult& result : epochs) {
    if (result.epoch() >= epoch) continue;
    const auto [known, is_new] = history_.try_emplace(result.epoch(), result);
    if (is_new || known->second.has_test_loss() || !result.has_test_loss()) continue;
    known->second.set_test_loss(result.test_loss());
    *known->second.mutable_test_metrics() = result.test_metrics();
  }
}

void Progress::SetMetrics(const std::vector<double>& values, Metrics* out) const {
  out->Clear();
  for (size_t i = 0; i < std::min(values.size(), metric_names_.size()); ++i) {
    proto::MetricValue* metric = out->Add();
    metric->set_name(metric_names_[i]);
    metric->set_value(values[i]);
  }
}

}  // namespace shoal
