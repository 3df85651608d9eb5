#include "coordinator/evaluator/checkpoint_evaluation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/text/printable.h"
#include "common/log/logging.h"
#include "common/run/run_verdict.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {
namespace {

constexpr int kMaxWanted = 16;  // an evaluator requests fewer at once
// At the end, an evaluator that has not come and gone after this time counts as gone.
constexpr Time kEvaluatorDismissTimeout = std::chrono::seconds(5);
constexpr size_t kMinKept = 2;  // the same as in CheckpointStore

}  // namespace

CheckpointEvaluation::CheckpointEvaluation(Options options)
    : options_(std::move(options)),
      peer_({.loop = options_.loop,
             .job_text = options_.job_text,
             .usable = options_.usable,
             .on_ready = [this] { OnEvaluatorReady(); },
             .check_ready = options_.check_ready,
             .on_report = [this](const proto::EvaluatorReport& report) { OnReport(report); },
             .on_gone = [this](bool in_order) { OnEvaluatorGone(in_order); }}),
      backlog_(std::max<size_t>(std::max(options_.keep, 0), kMinKept)),
      csv_({.loop = options_.loop,
            .files = options_.store->files(),
            .path = options_.paths.evaluations(),
            .header = EvaluationsHeader(options_.progress->metric_names()),
            .lines = [this](uint64_t from) { return LinesFrom(from); },
            .wakeup = options_.wakeup,
            .lock = options_.lock}) {}

// --- The checkpoints to evaluate ---

void CheckpointEvaluation::Begin() {
  if (!std::exchange(begun_, true)) Read();
}

void CheckpointEvaluation::Read() {
  scope_.Offload(
      Lane::kFiles,
      [store = options_.store, path = options_.paths.evaluations()] {
        return Found{store->List(nullptr), ReadEvaluations(path, store->files())};
      },
      [this](const Found& found) { OnRead(found); });
}

// Until both are read, no result is counted. Otherwise a write of the whole file would drop lines
// that the disk holds, and checkpoints would be evaluated again.
void CheckpointEvaluation::OnRead(const Found& found) {
  absl::Status failure = found.evaluations.status();
  failure.Update(found.stored.status());
  if (last_read_.IsNewFailure(failure)) {
    LogWarning(absl::StrCat(std::string(failure.message()),
                            "; retrying. No evaluator gets a checkpoint before this can be read"));
  }
  if (!failure.ok()) {
    read_again_.Set(CsvWriter::kRetryReadAfter, [this] { Read(); });
    return MaybeEnd();
  }
  const absl::Status& damage = found.evaluations->damage;
  if (!damage.ok()) LogWarning(std::string(damage.message()));
  results_ = found.evaluations->results;
  written_ = results_.size();
  for (const CheckpointResult& result : results_) known_.insert(result.checkpoint);
  read_ = true;
  for (auto each = found.stored->rbegin(); each != found.stored->rend(); ++each) {
    if (each->manifest.finite()) backlog_.Add(*each);
  }
  for (const StoredCheckpoint& each : std::exchange(added_, {})) Add(each);
  SendNext();
  MaybeEnd();
}

void CheckpointEvaluation::Add(const StoredCheckpoint& checkpoint) {
  if (!read_) return added_.push_back(checkpoint);
  if (!checkpoint.manifest.finite() || backlog_.Has(checkpoint.directory)) return;
  for (const StoredCheckpoint& each : backlog_.Add(checkpoint)) {
    const bool current = current_.has_value() && current_->checkpoint.directory == each.directory;
    if (peer_.up() && !current && !IsKnown(each)) {
      LogWarning(
          absl::StrCat("checkpoint ", NameOf(each),
                       " is not evaluated: checkpoints come faster than the evaluator evaluates "
                       "them, and only the newest $.checkpoint.keep are kept"));
    }
  }
  SendNext();
}

bool CheckpointEvaluation::IsKnown(const StoredCheckpoint& checkpoint) const {
  return known_.contains(NameOf(checkpoint)) && !options_.is_awaited(checkpoint);
}

// At the end of the job, only the checkpoints that the run's curves lack.
bool CheckpointEvaluation::IsWanted(const StoredCheckpoint& checkpoint) const {
  if (!options_.may_be_evaluated(checkpoint)) return false;
  return failure_.has_value() ? failure_->empty() && options_.is_awaited(checkpoint)
                              : !IsKnown(checkpoint);
}

bool CheckpointEvaluation::WillBring(const StoredCheckpoint& checkpoint) const {
  if (!peer_.present()) return false;
  if (!read_) return last_read_.result().ok();
  return backlog_.Has(checkpoint.directory) ||
         (current_.has_value() && current_->checkpoint.directory == checkpoint.directory);
}

void CheckpointEvaluation::WarnEvaluatorMissing() {
  if (!options_.listed || peer_.present() || std::exchange(said_it_is_not_there_, true)) return;
  LogWarning(absl::StrCat("the evaluator of the cluster spec ",
                          peer_.address().empty() ? "has not connected" : "is gone",
                          ": the workers evaluate until it connects"));
}

// --- One evaluation ---

std::optional<StoredCheckpoint> CheckpointEvaluation::Next() const {
  return backlog_.Next([this](const StoredCheckpoint& each) { return IsWanted(each); });
}

void CheckpointEvaluation::SendNext() {
  if (!read_ || dismissed_ || !peer_.up()) return;
  if (current_.has_value()) {
    if (!options_.training_waits || current_->verifying) return;
    if (IsAtEpochEnd(current_->checkpoint.manifest)) return;
    const auto next = Next();
    if (!next.has_value() || !IsAtEpochEnd(next->manifest)) return;
    StopCurrent();  // it stays in the backlog
  }
  const auto next = Next();
  if (!next.has_value()) return;
  const uint64_t examples = next->manifest.test_examples;
  if (examples > 0 && examples != peer_.test_examples()) {
    return peer_.Reject(absl::StrCat("this evaluator sees ", peer_.test_examples(),
                                     " test examples, but ", next->directory, " was made with ",
                                     examples, ". Give it the same data as the workers"),
                        /*final=*/true);
  }
  const Time now = options_.loop->Now();
  current_ = Current{.number = ++number_,
                     .checkpoint = *next,
                     .rows = std::make_unique<CheckpointRows>(options_.loop, options_.store, *next),
                     .began = now,
                     .headway_at = now};
  in_use_->Add(next->directory);
  proto::EvaluatorOrder order;
  order.mutable_evaluate()->set_evaluation(number_);
  order.mutable_evaluate()->set_checkpoint(NameOf(*next));
  peer_.Send(order);
}

void CheckpointEvaluation::OnEvaluatorReady() {
  said_it_is_not_there_ = false;
  if (dismissed_) return;  // EndJob told it
  SendNext();
  options_.wakeup->Raise();
}

void CheckpointEvaluation::OnReport(const proto::EvaluatorReport& report) {
  const auto is_current = [this](uint64_t number) {
    return current_.has_value() && current_->number == number && !current_->verifying;
  };
  switch (report.kind_case()) {
    case proto::EvaluatorReport::kValuesWanted:
      if (is_current(report.values_wanted().evaluation())) OnValuesWanted(report.values_wanted());
      return;
    case proto::EvaluatorReport::kProgress: {
      const proto::EvaluationProgress& progress = report.progress();
      if (!is_current(progress.evaluation())) return;
      // Each batch counts as headway, so their number must be that of the test set.
      const uint64_t batches = (peer_.test_examples() - 1) / options_.batch_size + 1;
      if (progress.batches() != batches || progress.batches_done() > batches) {
        return peer_.Reject(
            absl::StrCat("this evaluator reported ", progress.batches_done(), " of ",
                         progress.batches(), " batches; its test set has ", batches),
            /*final=*/true);
      }
      if (progress.batches_done() > current_->batches_done)
        current_->headway_at = options_.loop->Now();
      current_->batches_done = progress.batches_done();
      current_->batches = progress.batches();
      return;
    }
    case proto::EvaluatorReport::kEvaluated:
      if (is_current(report.evaluated().evaluation())) OnEvaluated(report.evaluated());
      return;
    default:
      return;
  }
}

void CheckpointEvaluation::OnValuesWanted(const proto::ValuesWanted& wanted) {
  if (current_->wanted == kMaxWanted || wanted.size_bytes() > kMaxChunkBytes) {
    return peer_.Reject(
        absl::StrCat("this evaluator asks for ", wanted.size_bytes(), " bytes while ",
                     current_->wanted, " other requests are open; at most ", kMaxChunkBytes,
                     " bytes and ", kMaxWanted, " requests are allowed"),
        /*final=*/true);
  }
  // Otherwise the failed read would count against the checkpoint.
  const auto place = options_.layout->places.find(wanted.variable());
  const uint64_t size = place == options_.layout->places.end() ? 0 : place->second.entry.size;
  if (wanted.offset_bytes() > size || wanted.size_bytes() > size - wanted.offset_bytes()) {
    return peer_.Reject(
        absl::StrCat("this evaluator asks for ", wanted.size_bytes(), " bytes at ",
                     wanted.offset_bytes(), " of \"", Printable(wanted.variable(), kMaxNameBytes),
                     "\", which has ", size, " in the model of the job"),
        /*final=*/true);
  }
  ++current_->wanted;
  proto::EvaluatorOrder order;
  order.mutable_values()->set_evaluation(current_->number);
  order.mutable_values()->set_variable(wanted.variable());
  order.mutable_values()->set_offset_bytes(wanted.offset_bytes());
  current_->rows->Read({wanted.variable(), wanted.offset_bytes(), wanted.size_bytes()},
                       [this, order](absl::StatusOr<std::string> values) mutable {
                         if (!values.ok())
                           return SkipCurrent(std::string(values.status().message()));
                         order.mutable_values()->set_values(*std::move(values));
                         OnRows(order);
                       });
}

void CheckpointEvaluation::OnRows(const proto::EvaluatorOrder& values) {
  --current_->wanted;
  current_->headway_at = options_.loop->Now();
  if (peer_.up()) peer_.Send(values);
}

void CheckpointEvaluation::OnEvaluated(const proto::CheckpointEvaluated& evaluated) {
  const int sums = options_.progress->metric_sum_count();
  if (evaluated.examples() != peer_.test_examples() || evaluated.metric_sums_size() != sums) {
    return peer_.Reject(
        absl::StrCat("this evaluator reported ", evaluated.examples(), " examples and ",
                     evaluated.metric_sums_size(), " sums of metrics; its test set has ",
                     peer_.test_examples(), ", and the metrics of the job have ", sums),
        /*final=*/true);
  }
  current_->verifying = true;
  // The evaluator got the values before their checksums were verified.
  current_->rows->Verify(
      [this, evaluated](const absl::Status& whole) { OnVerified(evaluated, whole); });
}

void CheckpointEvaluation::OnVerified(const proto::CheckpointEvaluated& evaluated,
                                      const absl::Status& whole) {
  if (!whole.ok()) return SkipCurrent(std::string(whole.message()));
  const StoredCheckpoint checkpoint = current_->checkpoint;
  const Time took = options_.loop->Now() - current_->began;
  backlog_.Remove(checkpoint.directory);
  // The checkpoint stays on disk until its line is written.
  current_.reset();
  Count(checkpoint, evaluated, took);
  SendNext();
  options_.wakeup->Raise();
  MaybeEnd();
}

void CheckpointEvaluation::Count(const StoredCheckpoint& checkpoint,
                                 const proto::CheckpointEvaluated& evaluated, Time took) {
  // A restore has meanwhile taken the run back before this checkpoint.
  if (!options_.may_be_evaluated(checkpoint)) return in_use_->Remove(checkpoint.directory);
  ++evaluated_;
  CheckpointResult result = {
      .checkpoint = NameOf(checkpoint),
      .step = checkpoint.manifest.cut_step,
      .epoch = checkpoint.manifest.epoch,
      .loss = evaluated.loss_sum() / static_cast<double>(evaluated.examples()),
      .seconds = ToSeconds(took),
      .examples = evaluated.examples()};
  const std::vector<double> sums(evaluated.metric_sums().begin(), evaluated.metric_sums().end());
  const std::vector<double> figures =
      options_.progress->MetricsOf(sums, static_cast<uint64_t>(evaluated.examples()));
  std::string text =
      absl::StrFormat("step %d: test loss %.4f", checkpoint.manifest.cut_step, result.loss);
  for (size_t i = 0; i < figures.size(); ++i) {
    const std::string& name = options_.progress->metric_names()[i];
    result.metrics.emplace_back(name, figures[i]);
    absl::StrAppendFormat(&text, ", test %s %.4f", name, figures[i]);
  }
  const Options::Sums counted = {evaluated.examples(), result.loss, sums};
  // The result of an epoch's end is logged with the epoch.
  if (!options_.is_awaited(checkpoint)) LogInfo(text);
  if (known_.insert(result.checkpoint).second) {
    unwritten_[results_.size()] = checkpoint.directory;
    results_.push_back(std::move(result));
    csv_.Changed(results_.size() - 1);
  } else {
    in_use_->Remove(checkpoint.directory);
  }
  options_.on_result(checkpoint, counted);
}

void CheckpointEvaluation::SkipCurrent(const std::string& why) {
  const StoredCheckpoint checkpoint = current_->checkpoint;
  LogWarning(absl::StrCat("checkpoint ", NameOf(checkpoint), " cannot be evaluated: ", why));
  if (IsAtEpochEnd(checkpoint.manifest)) skipped_.insert(checkpoint.manifest.epoch);
  backlog_.Remove(checkpoint.directory);
  StopCurrent();
  SendNext();
  options_.wakeup->Raise();
  MaybeEnd();
}

void CheckpointEvaluation::StopCurrent() {
  in_use_->Remove(current_->checkpoint.directory);
  current_.reset();
}

void CheckpointEvaluation::OnEvaluatorGone(bool in_order) {
  // A checkpoint that is being verified no longer needs the evaluator.
  if (current_.has_value() && !current_->verifying) {
    const StoredCheckpoint checkpoint = current_->checkpoint;
    if (!in_order && !backlog_.Failed(checkpoint.directory)) {
      LogWarning(absl::StrCat("checkpoint ", NameOf(checkpoint),
                              " is not evaluated: each evaluator that tried it was lost"));
      if (IsAtEpochEnd(checkpoint.manifest)) skipped_.insert(checkpoint.manifest.epoch);
    }
    StopCurrent();
  }
  if (dismissed_) return OnEnded();
  options_.wakeup->Raise();
  MaybeEnd();
}

void CheckpointEvaluation::Tick() {
  const Time now = options_.loop->Now();
  if (current_.has_value() && !current_->verifying &&
      now - current_->headway_at >= options_.timeout) {
    peer_.Reject(absl::StrCat("this evaluator has made no progress with ", CurrentActivity(),
                              " for ", WholeSeconds(options_.timeout),
                              " s, the job's $.strategy.lease_timeout_seconds. Raise that field "
                              "if a batch takes longer"),
                 /*final=*/false);
  }
  SendNext();
  MaybeEnd();
}

std::string CheckpointEvaluation::CurrentActivity() const {
  if (!current_.has_value()) return "";
  return absl::StrCat(NameOf(current_->checkpoint), ": ",
                      current_->batches == 0 ? "its values are being read"
                                             : absl::StrCat(current_->batches_done, " of ",
                                                            current_->batches, " batches done"));
}

// --- evaluations.csv ---

std::vector<HistoryLine> CheckpointEvaluation::LinesFrom(uint64_t place) const {
  std::vector<HistoryLine> lines;
  for (size_t i = place; i < results_.size(); ++i)
    lines.push_back({i, FormatEvaluationLine(options_.progress->metric_names(), results_[i])});
  return lines;
}

bool CheckpointEvaluation::TakeWritten() {
  const size_t below = csv_.owed_from().value_or(results_.size());
  const bool wrote = written_ < below;
  // The results are in the file now. It decides which checkpoints stay.
  for (; written_ < below; ++written_) {
    in_use_->Remove(unwritten_.at(written_));
    unwritten_.erase(written_);
  }
  return wrote;
}

// --- The end ---

void CheckpointEvaluation::End(const std::string& failure) {
  failure_ = failure;
  ending_at_ = options_.loop->Now();
  Begin();
  // Stops the current evaluation if its result is no longer wanted.
  if (current_.has_value() && !current_->verifying && !IsWanted(current_->checkpoint))
    StopCurrent();
  SendNext();
  MaybeEnd();
}

bool CheckpointEvaluation::Owes() const {
  if (!failure_->empty()) return false;
  if (!read_ || current_.has_value()) return true;
  return std::any_of(backlog_.checkpoints().begin(), backlog_.checkpoints().end(),
                     [this](const StoredCheckpoint& each) { return IsWanted(each); });
}

bool CheckpointEvaluation::MayBringOwed() const {
  const bool in_time = options_.loop->Now() - ending_at_ < kEvaluatorPatience;
  const bool expected = options_.listed || peer_.state() == EvaluatorPeer::State::kLost;
  const bool there = peer_.connected() || peer_.present();
  if (!last_read_.result().ok()) return in_time && (there || expected);
  return !read_ || there || (expected && in_time);
}

void CheckpointEvaluation::MaybeEnd() {
  if (!failure_.has_value() || dismissed_) return;
  if (Owes()) {
    if (MayBringOwed()) return;
    // Without an evaluator in this run, no such result was expected.
    if (!peer_.address().empty()) {
      const absl::Status& read = last_read_.result();
      LogWarning(
          absl::StrCat("the last checkpoint is not evaluated: ",
                       read.ok() ? absl::StrCat("the evaluator is gone (", peer_.detail(), ")")
                                 : std::string(read.message()),
                       "; `shoal evaluate ", options_.paths.directory, "` computes the same"));
    }
  }
  dismissed_ = true;
  peer_.EndJob(*failure_);
  // When a job fails early, a listed evaluator may still be starting. It must learn of the end.
  const bool may_come =
      options_.listed && !failure_->empty() && peer_.state() != EvaluatorPeer::State::kLeft;
  if (!peer_.connected() && !may_come) return OnEnded();
  dismiss_deadline_.Set(kEvaluatorDismissTimeout, [this] { OnEnded(); });
}

void CheckpointEvaluation::OnEnded() {
  if (std::exchange(ended_, true)) return;
  dismiss_deadline_.Cancel();
  options_.wakeup->Raise();
}

}  // namespace shoal
