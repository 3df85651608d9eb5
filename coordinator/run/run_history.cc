#include "coordinator/run/run_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// Pause between a decision that failed and the retry.
constexpr Time kRetryDecisionAfter = std::chrono::seconds(5);

}  // namespace

RunHistory::RunHistory(Options options)
    : options_(std::move(options)),
      progress_(*options_.progress),
      csv_({.loop = options_.loop,
            .files = options_.files,
            .path = options_.paths.history(),
            .header = HistoryHeader(progress_.metric_names()),
            .lines = [this](uint64_t from) { return LinesFrom(from); },
            .wakeup = options_.wakeup,
            .lock = options_.lock}) {
  csv_.Hold();
}

std::vector<HistoryLine> RunHistory::LinesFrom(uint64_t epoch) const {
  std::vector<HistoryLine> lines;
  const auto& history = progress_.history();
  for (auto each = history.lower_bound(epoch); each != history.end(); ++each)
    lines.push_back(FormatHistoryLine(progress_.metric_names(), each->second));
  return lines;
}

void RunHistory::ReadEarlier() {
  read_ = false;
  csv_.Hold();
  earlier_.clear();
  read_again_.Cancel();
  Read();
}

void RunHistory::Read() {
  reading_.emplace(options_.loop);
  reading_->Offload(
      Lane::kFiles,
      [paths = options_.paths, callbacks = options_.callbacks, files = options_.files] {
        return Found{ReadHistory(paths.history(), files), ReadRunVerdict(callbacks, paths, files)};
      },
      [this](const Found& found) { OnRead(found); });
}

// The lines that the disk holds are not known before it is read, and a write of the whole file
// would drop them.
void RunHistory::OnRead(const Found& found) {
  if (last_read_.IsNewFailure(found.earlier.status())) {
    LogWarning(absl::StrCat(std::string(found.earlier.status().message()),
                            "; retrying. Until this file can be read, only a stop or a ps that "
                            "leaves gets a checkpoint"));
  }
  if (!found.earlier.ok()) return read_again_.Set(CsvWriter::kRetryReadAfter, [this] { Read(); });
  if (!found.earlier->damage.ok()) LogWarning(std::string(found.earlier->damage.message()));
  earlier_ = found.earlier->epochs;
  read_ = true;
  TakeVerdict(found.verdict);
  // Pending changes must not remove earlier lines from the file.
  TakeEarlier();
  csv_.Release();
  options_.wakeup->Raise();
}

void RunHistory::Begin(const StepPlan& plan, uint64_t base, const Manifest* newest) {
  plan_ = plan;
  closed_ = 0;
  while (closed_ < plan_->epochs() && plan_->EpochEnd(closed_) <= base) ++closed_;
  const auto& history = progress_.history();
  const bool rewinds = history.lower_bound(closed_) != history.end() ||
                       std::any_of(earlier_.begin(), earlier_.end(),
                                   [this](const auto& each) { return each.epoch() >= closed_; });
  progress_.Rewind(closed_);
  progress_.Restore(earlier_, closed_);
  // The results of a continued epoch include its steps below the newest checkpoint. If the timeline
  // was adopted, those of later steps are lost with the former coordinator.
  if (newest != nullptr && !newest->epoch_done() && newest->epoch == closed_)
    progress_.Resume(closed_, newest->epoch_sums, options_.loop->Now());
  csv_.Distrust();
  // Removes the lines of dropped epochs before the file is read.
  if (rewinds) csv_.Changed(0);
}

void RunHistory::TakeEarlier() {
  if (!plan_.has_value()) return;  // it is not known yet which epochs stay
  progress_.Restore(earlier_, closed_);
  csv_.Changed(0);
}

void RunHistory::CloseUpTo(uint64_t base) {
  while (closed_ < plan_->epochs() && base >= plan_->EpochEnd(closed_)) {
    const proto::EpochResult& result = progress_.CloseEpoch(closed_, options_.loop->Now());
    std::string text =
        absl::StrFormat("epoch %d of %d: loss %.4f", closed_ + 1, plan_->epochs(), result.loss());
    for (const proto::MetricValue& metric : result.metrics()) {
      absl::StrAppendFormat(&text, ", %s %.4f", metric.name(), metric.value());
    }
    absl::StrAppendFormat(&text, ", %.1f s, %.0f examples/s", result.seconds(),
                          result.examples_per_second());
    LogInfo(text);
    ++closed_;
    csv_.Changed(closed_ - 1);
  }
}

void RunHistory::SetTestResult(uint64_t epoch, double loss, const std::vector<double>& metric_sums,
                               uint64_t examples) {
  const std::vector<double> metrics = progress_.MetricsOf(metric_sums, examples);
  progress_.SetTestResult(epoch, loss, metrics);
  std::string text =
      absl::StrFormat("epoch %d of %d: test loss %.4f", epoch + 1, plan_->epochs(), loss);
  for (size_t i = 0; i < metrics.size(); ++i) {
    absl::StrAppendFormat(&text, ", test %s %.4f", progress_.metric_names()[i], metrics[i]);
  }
  LogInfo(text);
  csv_.Changed(epoch);
}

bool RunHistory::IsEvaluated(uint64_t epoch) const {
  const auto result = progress_.history().find(epoch);
  return result != progress_.history().end() && result->second.has_test_loss();
}

void RunHistory::RunCallbacks(uint64_t epoch, std::function<bool()> still_due,
                              std::function<void()> on_verdict) {
  if (running_callbacks_ || !read_ || csv_.owed_from().has_value()) return;
  if (options_.loop->Now() < run_again_at_) return;
  running_callbacks_ = true;
  scope_.Offload(
      Lane::kFiles,
      [callbacks = options_.callbacks, paths = options_.paths, files = options_.files] {
        return ReadRunVerdict(callbacks, paths, files);
      },
      [this, epoch, still_due = std::move(still_due),
       on_verdict = std::move(on_verdict)](const absl::StatusOr<RunVerdict>& verdict) {
        running_callbacks_ = false;
        if (still_due()) OnVerdict(epoch, verdict, on_verdict);
      });
}

void RunHistory::ReadVerdict() {
  scope_.Offload(
      Lane::kFiles,
      [callbacks = options_.callbacks, paths = options_.paths, files = options_.files] {
        return ReadRunVerdict(callbacks, paths, files);
      },
      [this](const absl::StatusOr<RunVerdict>& verdict) { TakeVerdict(verdict); });
}

void RunHistory::TakeVerdict(const absl::StatusOr<RunVerdict>& verdict) {
  const absl::Status& failure = verdict.ok() ? verdict->unread_evaluations : verdict.status();
  if (last_verdict_.IsNewFailure(failure)) {
    LogWarning(absl::StrCat("cannot tell which epoch or checkpoint is the best: ",
                            std::string(failure.message())));
  }
  if (verdict.ok()) verdict_ = *verdict;
}

void RunHistory::OnVerdict(uint64_t epoch, const absl::StatusOr<RunVerdict>& verdict,
                           const std::function<void()>& on_verdict) {
  if (!verdict.ok() || !verdict->evaluated.contains(epoch)) {
    LogWarning(absl::StrCat("cannot decide whether training continues after epoch ", epoch + 1,
                            ": ",
                            verdict.ok() ? options_.paths.history() + " does not have it"
                                         : std::string(verdict.status().message()),
                            "; writing the file again"));
    csv_.WriteAnewLater();
    run_again_at_ = options_.loop->Now() + kRetryDecisionAfter;
    return;
  }
  TakeVerdict(verdict);
  on_verdict();
}

}  // namespace shoal
