#include "coordinator/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace shoal {
namespace {

constexpr Time kRateWindow = std::chrono::seconds(5);

}  // namespace

void Progress::StepDone(uint64_t epoch, uint64_t examples, double loss_sum,
                        const std::vector<double>& metric_sums, Time now) {
  Sums& sums = running_[epoch];
  if (sums.began == Time{}) sums.began = now;
  sums.examples += examples;
  sums.loss += loss_sum;
  sums.metrics.resize(metric_names_.size());
  for (size_t i = 0; i < std::min(metric_sums.size(), sums.metrics.size()); ++i) {
    sums.metrics[i] += metric_sums[i];
  }
  recent_.push_back({now, examples});
  recent_examples_ += examples;
  while (recent_.front().at < now - kRateWindow) {
    recent_examples_ -= recent_.front().examples;
    recent_.pop_front();
  }
}

void Progress::EpochBegins(uint64_t epoch, Time now) {
  Sums& sums = running_[epoch];
  if (sums.began == Time{}) sums.began = now;
}

const EpochRecord& Progress::CloseEpoch(uint64_t epoch, Time now) {
  EpochRecord& record = history_[epoch];
  record.epoch = epoch;
  record.loss = loss(epoch);
  record.metrics = metrics(epoch);
  const Sums& sums = running_[epoch];
  // After a takeover an epoch may close of which nothing was seen here.
  if (sums.began != Time{}) record.seconds = ToSeconds(now - sums.began);
  if (record.seconds > 0)
    record.examples_per_second = static_cast<double>(sums.examples) / record.seconds;
  running_.erase(epoch);
  return record;
}

void Progress::SetTestResult(uint64_t epoch, double loss, std::vector<double> metrics) {
  EpochRecord& record = history_[epoch];
  record.epoch = epoch;
  record.test_loss = loss;
  record.test_metrics = std::move(metrics);
}

void Progress::Rewind(uint64_t epoch) {
  running_.clear();
  history_.erase(history_.lower_bound(epoch), history_.end());
}

std::optional<Progress::Means> Progress::Latest(uint64_t running) const {
  const auto sums = running_.find(running);
  if (sums != running_.end() && sums->second.examples > 0)
    return Means{loss(running), metrics(running)};
  if (history_.empty()) return std::nullopt;
  const EpochRecord& closed = history_.rbegin()->second;
  return Means{closed.loss, closed.metrics};
}

double Progress::loss(uint64_t epoch) const {
  auto sums = running_.find(epoch);
  if (sums == running_.end() || sums->second.examples == 0) return 0;
  return sums->second.loss / static_cast<double>(sums->second.examples);
}

std::vector<double> Progress::metrics(uint64_t epoch) const {
  std::vector<double> means(metric_names_.size(), 0.0);
  auto sums = running_.find(epoch);
  if (sums == running_.end() || sums->second.examples == 0) return means;
  for (size_t i = 0; i < sums->second.metrics.size(); ++i) {
    means[i] = sums->second.metrics[i] / static_cast<double>(sums->second.examples);
  }
  return means;
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

std::string Progress::HistoryCsv() const {
  std::string text = "epoch,loss";
  for (const std::string& name : metric_names_) absl::StrAppend(&text, ",", name);
  absl::StrAppend(&text, ",val_loss");
  for (const std::string& name : metric_names_) absl::StrAppend(&text, ",val_", name);
  absl::StrAppend(&text, ",seconds,examples_per_second\n");
  for (const auto& [epoch, record] : history_) {
    absl::StrAppendFormat(&text, "%u,%.6g", epoch + 1, record.loss);
    for (size_t i = 0; i < metric_names_.size(); ++i) {
      absl::StrAppendFormat(&text, ",%.6g", i < record.metrics.size() ? record.metrics[i] : 0.0);
    }
    absl::StrAppend(&text, ",");
    if (record.test_loss.has_value()) absl::StrAppendFormat(&text, "%.6g", *record.test_loss);
    for (size_t i = 0; i < metric_names_.size(); ++i) {
      absl::StrAppend(&text, ",");
      if (i < record.test_metrics.size())
        absl::StrAppendFormat(&text, "%.6g", record.test_metrics[i]);
    }
    absl::StrAppendFormat(&text, ",%.3f,%.1f\n", record.seconds, record.examples_per_second);
  }
  return text;
}

void Progress::ReadHistoryCsv(const std::string& text, uint64_t epoch) {
  const size_t metrics = metric_names_.size();
  for (const auto& line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (fields.size() != 5 + 2 * metrics) continue;
    std::vector<double> numbers(fields.size());
    const bool tested = !fields[2 + metrics].empty();
    bool fits = true;
    for (size_t i = 0; i < fields.size(); ++i) {
      const bool is_empty = !tested && i >= 2 + metrics && i < 3 + 2 * metrics;
      fits = fits && (is_empty ? fields[i].empty() : absl::SimpleAtod(fields[i], &numbers[i]));
    }
    // Also false where it is not a number.
    fits = fits && numbers[0] >= 1 && numbers[0] <= static_cast<double>(epoch);
    if (!fits || numbers[0] != std::floor(numbers[0])) continue;
    EpochRecord record{.epoch = static_cast<uint64_t>(numbers[0]) - 1, .loss = numbers[1]};
    record.metrics.assign(numbers.begin() + 2, numbers.begin() + 2 + metrics);
    if (tested) {
      record.test_loss = numbers[2 + metrics];
      record.test_metrics.assign(numbers.begin() + 3 + metrics, numbers.begin() + 3 + 2 * metrics);
    }
    record.seconds = numbers[3 + 2 * metrics];
    record.examples_per_second = numbers[4 + 2 * metrics];
    history_[record.epoch] = record;
  }
}

}  // namespace shoal
