#include "coordinator/run_history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/daemon/logging.h"
#include "coordinator/cut_plan.h"

namespace shoal {

RunHistory::RunHistory(Options options)
    : options_(std::move(options)),
      progress_(*options_.progress),
      file_(std::make_shared<HistoryFile>(
          options_.paths.history(), HistoryHeader(progress_.metric_names()), options_.files)) {}

RunHistory::~RunHistory() { *alive_ = false; }

void RunHistory::ReadEarlier() {
  read_ = false;
  earlier_.clear();
  const auto earlier = std::make_shared<History>();
  const auto verdict = std::make_shared<absl::StatusOr<RunVerdict>>();
  options_.loop->Offload(
      [earlier, verdict, paths = options_.paths, callbacks = options_.callbacks,
       files = options_.files] {
        *earlier = ReadHistory(paths.history(), files);
        *verdict = ReadRunVerdict(callbacks, paths, files);
      },
      [this, alive = alive_, reading = ++readings_, earlier, verdict] {
        if (!*alive || reading != readings_) return;  // it is read again
        if (!earlier->problem.empty()) LogWarning(earlier->problem);
        earlier_ = std::move(earlier->epochs);
        read_ = true;
        if (verdict->ok()) verdict_ = **verdict;
        options_.on_read();
      });
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
  // The figures of an epoch that is gone on with are those of all its steps: of those below the
  // newest checkpoint too. What others of them came to only a coordinator knew that is gone, if the
  // timeline was adopted.
  if (newest != nullptr && !newest->epoch_done() && newest->epoch == closed_)
    progress_.Resume(closed_, newest->epoch_sums, options_.loop->Now());
  changed_ = 0;
  // Before anything is read from it: what it says of epochs that did not happen is void.
  if (rewinds) Write(0);
}

void RunHistory::TakeEarlier() {
  if (!plan_.has_value()) return;  // which of the epochs stay is not known
  progress_.Restore(earlier_, closed_);
  Write(0);
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
    Write(closed_ - 1);
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
  Write(epoch);
}

bool RunHistory::IsEvaluated(uint64_t epoch) const {
  const auto result = progress_.history().find(epoch);
  return result != progress_.history().end() && result->second.has_test_loss();
}

// One at a time: epochs may end faster than a disk writes. None before the lines of the
// coordinators before this one are known, which it would take out.
void RunHistory::Write(uint64_t from) {
  changed_ = std::min(changed_.value_or(from), from);
  if (writing_ || !read_) return;
  writing_ = true;
  const uint64_t first = *std::exchange(changed_, std::nullopt);
  std::vector<HistoryLine> lines;
  const auto& history = progress_.history();
  for (auto epoch = history.lower_bound(first); epoch != history.end(); ++epoch)
    lines.push_back(FormatHistoryLine(progress_.metric_names(), epoch->second));
  auto written = std::make_shared<absl::Status>();
  options_.loop->Offload([file = file_, first, lines = std::move(lines),
                          written] { *written = file->Write(first, lines); },
                         [this, alive = alive_, first, written] {
                           if (*alive) OnWritten(first, *written);
                         });
}

void RunHistory::OnWritten(uint64_t first, const absl::Status& status) {
  writing_ = false;
  const bool again = changed_.has_value() || (!status.ok() && first > 0);
  if (!status.ok()) {
    LogWarning("history.csv: " + std::string(status.message()));
    changed_ = 0;
    decide_again_at_ = options_.loop->Now() + kRetryCutAfter;
  }
  error_ = std::string(status.message());
  if (again) return Write(*changed_);
  options_.on_idle();
}

void RunHistory::Decide(uint64_t epoch, std::function<bool()> asked,
                        std::function<void()> decided) {
  if (deciding_ || writing_ || !read_) return;
  if (options_.loop->Now() < decide_again_at_) return;
  if (changed_.has_value()) return Write(*changed_);
  deciding_ = true;
  auto verdict = std::make_shared<absl::StatusOr<RunVerdict>>();
  options_.loop->Offload(
      [verdict, callbacks = options_.callbacks, paths = options_.paths, files = options_.files] {
        *verdict = ReadRunVerdict(callbacks, paths, files);
      },
      [this, alive = alive_, verdict, epoch, asked = std::move(asked),
       decided = std::move(decided)] {
        if (!*alive) return;
        deciding_ = false;
        if (asked()) OnVerdict(epoch, *verdict, decided);
      });
}

void RunHistory::ReadVerdict() {
  auto verdict = std::make_shared<absl::StatusOr<RunVerdict>>();
  options_.loop->Offload(
      [verdict, callbacks = options_.callbacks, paths = options_.paths, files = options_.files] {
        *verdict = ReadRunVerdict(callbacks, paths, files);
      },
      [this, alive = alive_, verdict] {
        if (*alive && verdict->ok()) verdict_ = **verdict;
      });
}

void RunHistory::OnVerdict(uint64_t epoch, const absl::StatusOr<RunVerdict>& verdict,
                           const std::function<void()>& decided) {
  if (!verdict.ok() || !verdict->evaluated.contains(epoch)) {
    LogWarning(absl::StrCat("whether the training goes on after epoch ", epoch + 1,
                            " cannot be decided: ",
                            verdict.ok() ? options_.paths.history() + " does not have it"
                                         : std::string(verdict.status().message()),
                            "; the file is written anew"));
    changed_ = 0;
    decide_again_at_ = options_.loop->Now() + kRetryCutAfter;
    return;
  }
  verdict_ = *verdict;
  decided();
}

}  // namespace shoal
