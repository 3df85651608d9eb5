#include "worker/session/evaluator_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "worker/job/data_error.h"
#include "worker/session/other_job.h"

namespace shoal {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr size_t kMaxPending = 4;  // requests; reading, sending and copying overlap
constexpr Time kEvaluatorWatchPeriod = std::chrono::seconds(1);
// The evaluator logs a wait that is longer than this, again and again.
constexpr Time kWaitLogPeriod = std::chrono::seconds(5);
// It logs the wait for a new checkpoint less often, because that wait is normal.
constexpr Time kIdleLogPeriod = std::chrono::minutes(1);

}  // namespace

EvaluatorSession::EvaluatorSession(Options options)
    : options_(std::move(options)),
      link_({.loop = options_.loop,
             .network = options_.network,
             .coordinator = options_.coordinator,
             .method = kEvaluateMethod,
             .seed = options_.incarnation,
             .timeout = options_.coordinator_timeout,
             .on_open = [this] { SendHello(); },
             .on_message = [this](const Message& message) { OnMessage(message); },
             .on_closed = [this] { OnClosed(); },
             .is_quiet = [this] { return IsQuiet(); }}) {}

void EvaluatorSession::Start() {
  activity_began_ = options_.loop->Now();
  log_wait_at_ = activity_began_ + kWaitLogPeriod;
  link_.Start();
  watch_.Set(kEvaluatorWatchPeriod, [this] { Watch(); });
}

// Promise 8: nothing waits in silence. The link logs the wait for the coordinator itself.
void EvaluatorSession::Watch() {
  watch_.Set(kEvaluatorWatchPeriod, [this] { Watch(); });
  if (!link_.welcomed()) return;
  const Time now = options_.loop->Now();
  if (activity_ == Activity::kComputing) SendProgress();
  if (now < log_wait_at_ || preparing_) return;
  const std::string waited = absl::StrCat(", for ", WholeSeconds(now - activity_began_), " s");
  log_wait_at_ = now + kWaitLogPeriod;
  if (activity_ == Activity::kReading) {
    LogWarning(absl::StrCat("waiting for the coordinator at ", options_.coordinator,
                            " to send values of checkpoint ", checkpoint_, waited));
  } else if (activity_ == Activity::kIdle && prepared_.has_value() && !computing_) {
    LogInfo(absl::StrCat("waiting for the coordinator at ", options_.coordinator,
                         " to have a checkpoint that is not evaluated yet", waited));
    log_wait_at_ = now + kIdleLogPeriod;
  }
}

// --- The stream to the coordinator ---

void EvaluatorSession::SendHello() {
  proto::EvaluatorReport report;
  proto::EvaluatorHello* hello = report.mutable_hello();
  hello->set_version(kVersion);
  hello->set_host(options_.host);
  hello->set_pid(options_.pid);
  hello->set_device(options_.device);
  hello->set_threads(options_.threads);
  hello->set_incarnation(options_.incarnation);
  link_.Send(report);
}

void EvaluatorSession::OnClosed() {
  // The evaluation's number is only valid with that coordinator.
  if (evaluation_ != 0) Drop();
  if (const absl::Status retried = link_.Retry(); !retried.ok()) Over(retried);
}

// The coordinator offers an evaluation again after each hello, and it then begins anew.
bool EvaluatorSession::IsQuiet() const {
  return prepared_.has_value() && activity_ == Activity::kIdle;
}

void EvaluatorSession::OnMessage(const Message& message) {
  proto::EvaluatorOrder order;
  if (const absl::Status parsed = link_.Parse(message, &order); !parsed.ok()) return Over(parsed);
  switch (order.kind_case()) {
    case proto::EvaluatorOrder::kWelcome:
      return OnWelcome(order.welcome());
    case proto::EvaluatorOrder::kRejected:
      if (const absl::Status rejected = link_.Rejected(order.rejected()); !rejected.ok())
        Over(rejected);
      return;
    case proto::EvaluatorOrder::kEvaluate:
      return OnEvaluate(order.evaluate());
    case proto::EvaluatorOrder::kValues:
      return OnValues(order.values());
    case proto::EvaluatorOrder::kJobDone:
      if (const std::string& failure = order.job_done().failure(); !failure.empty())
        LogInfo("the job has failed: " + PrintableLines(failure, kMaxReasonBytes));
      return Over(absl::OkStatus());
    case proto::EvaluatorOrder::KIND_NOT_SET:
      return;
  }
}

void EvaluatorSession::OnWelcome(const proto::EvaluatorWelcome& welcome) {
  link_.Welcomed();
  const uint32_t job = JobFingerprint(welcome.job());
  if ((prepared_.has_value() || preparing_) && job != job_fingerprint_)
    return Over(OtherJob(options_.coordinator, job, job_fingerprint_));
  if (prepared_.has_value()) return SendReady();
  if (std::exchange(preparing_, true)) return;
  job_fingerprint_ = job;
  LogInfo("taking part as the evaluator");
  // Only the names and the layout of the variables are needed, so any number of ps works.
  options_.computer->Prepare(welcome.job(), /*ps_count=*/1,
                             scope_.Guard([this](absl::StatusOr<StepComputer::Prepared> prepared) {
                               if (!link_.over()) OnPrepared(std::move(prepared));
                             }));
}

void EvaluatorSession::OnPrepared(absl::StatusOr<StepComputer::Prepared> prepared) {
  preparing_ = false;
  if (!prepared.ok()) return Leave(prepared.status());
  prepared_ = *std::move(prepared);
  if (link_.welcomed()) SendReady();
}

void EvaluatorSession::SendReady() {
  Begin(Activity::kIdle);
  proto::EvaluatorReport report;
  report.mutable_ready()->set_test_examples(prepared_->test_examples);
  report.mutable_ready()->set_job_fingerprint(job_fingerprint_);
  link_.Send(report);
}

// --- One evaluation ---

void EvaluatorSession::OnEvaluate(const proto::EvaluateCheckpoint& evaluate) {
  if (!prepared_.has_value()) return;  // no correct coordinator sends this before SendReady()
  Drop();
  evaluation_ = evaluate.evaluation();
  checkpoint_ = Printable(evaluate.checkpoint(), kMaxNameBytes);
  LogInfo("evaluating checkpoint " + checkpoint_);
  Begin(Activity::kReading);
  // The values must not change while a batch is still computed from the former ones.
  if (!computing_) FetchValues();
}

std::vector<EvaluatorSession::Piece> EvaluatorSession::Pieces() const {
  const auto& variables = prepared_->layout->variables;
  std::vector<Piece> pieces;
  for (size_t variable = 0; variable < variables.size(); ++variable) {
    const uint64_t size = variables[variable].size * sizeof(float);
    for (uint64_t offset = 0; offset < size; offset += kPieceBytes) {
      pieces.push_back(
          {variable, offset, static_cast<uint32_t>(std::min(kPieceBytes, size - offset))});
    }
  }
  return pieces;
}

void EvaluatorSession::RequestPiece(const Piece& piece) {
  proto::EvaluatorReport report;
  proto::ValuesWanted* wanted = report.mutable_values_wanted();
  wanted->set_evaluation(evaluation_);
  wanted->set_variable(prepared_->variable_names[piece.variable]);
  wanted->set_offset_bytes(piece.offset_bytes);
  wanted->set_size_bytes(piece.size_bytes);
  link_.Send(report);
}

void EvaluatorSession::FetchValues() {
  fetch_.emplace(Pieces(), kMaxPending, [this](const Piece& piece) { RequestPiece(piece); });
  fetch_->RequestMore();
  MaybeCompute();
}

void EvaluatorSession::MaybeCompute() {
  if (!fetch_->done()) return;
  Begin(Activity::kComputing);
  for (uint64_t batch = 0; batch < prepared_->test_batches; ++batch)
    options_.computer->PrefetchEvaluation(batch);
  SendProgress();
  Compute();
}

void EvaluatorSession::OnValues(const proto::Values& values) {
  if (values.evaluation() != evaluation_ || activity_ != Activity::kReading) return;
  if (!fetch_.has_value()) return;
  const Piece* const piece = fetch_->Receive([&](const Piece& each) {
    return prepared_->variable_names[each.variable] == values.variable() &&
           each.offset_bytes == values.offset_bytes();
  });
  if (piece == nullptr) return;
  if (values.values().size() != piece->size_bytes) {
    return Over(absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options_.coordinator, " sent ", values.values().size(),
                     " bytes of ", values.variable(), " instead of ", piece->size_bytes,
                     "; start the evaluator with the coordinator's version of shoal")));
  }
  const int64_t offset = prepared_->layout->variables[piece->variable].offset;
  std::memcpy(
      reinterpret_cast<char*>(prepared_->cut_parameters.data() + offset) + piece->offset_bytes,
      values.values().data(), values.values().size());
  activity_began_ = options_.loop->Now();  // progress: the wait begins again
  log_wait_at_ = activity_began_ + kWaitLogPeriod;
  fetch_->Release();
  MaybeCompute();
}

void EvaluatorSession::Compute() {
  computing_ = true;
  options_.computer->Evaluate(
      batches_done_, scope_.Guard([this, work = work_](absl::StatusOr<BatchOutcome> outcome) {
        if (link_.over()) return;
        computing_ = false;
        if (work == work_) return OnComputed(std::move(outcome));
        // That evaluation was cancelled. The next one has waited for the end of this batch.
        if (activity_ == Activity::kReading) FetchValues();
      }));
}

void EvaluatorSession::OnComputed(absl::StatusOr<BatchOutcome> outcome) {
  if (!outcome.ok()) return Leave(outcome.status());
  AddBatch({.examples = static_cast<int64_t>(outcome->examples),
            .loss_sum = outcome->loss_sum,
            .metric_sums = outcome->metric_sums},
           &sums_);
  if (++batches_done_ < prepared_->test_batches) return Compute();
  proto::EvaluatorReport report;
  proto::CheckpointEvaluated* evaluated = report.mutable_evaluated();
  evaluated->set_evaluation(evaluation_);
  evaluated->set_examples(static_cast<uint64_t>(sums_.examples));
  evaluated->set_loss_sum(sums_.loss_sum);
  for (const double sum : sums_.metric_sums) evaluated->add_metric_sums(sum);
  link_.Send(report);
  Drop();
}

void EvaluatorSession::SendProgress() {
  proto::EvaluatorReport report;
  report.mutable_progress()->set_evaluation(evaluation_);
  report.mutable_progress()->set_batches_done(batches_done_);
  report.mutable_progress()->set_batches(prepared_->test_batches);
  link_.Send(report);
}

void EvaluatorSession::Begin(Activity activity) {
  const Time now = options_.loop->Now();
  const Time spent = now - std::exchange(activity_began_, now);
  const auto was = std::exchange(activity_, activity);
  stats_.AddTime(was == Activity::kIdle      ? WorkerStats::kIdle
                 : was == Activity::kReading ? WorkerStats::kPull
                                             : WorkerStats::kEvaluate,
                 spent);
  log_wait_at_ = now + kWaitLogPeriod;
}

void EvaluatorSession::Drop() {
  ++work_;
  evaluation_ = 0;
  fetch_.reset();
  batches_done_ = 0;
  sums_ = {};
  if (prepared_.has_value()) options_.computer->CancelEvaluationPrefetch();
  Begin(Activity::kIdle);
}

// --- The end ---

void EvaluatorSession::Stop(const std::string& reason) {
  if (link_.over()) return;
  LogInfo("stopping: " + reason);
  Leave(absl::CancelledError(reason));
}

void EvaluatorSession::Leave(const absl::Status& why) {
  if (link_.over()) return;
  proto::EvaluatorReport report;
  // The names of data files can be any bytes; strings of messages are UTF-8.
  report.mutable_leaving()->set_reason(
      PrintableLines(TextForCoordinator(why, options_.may_quote_data), kMaxReasonBytes));
  link_.Send(report);
  link_.Leave([this, why] { options_.on_over(why); });
}

void EvaluatorSession::Over(const absl::Status& status) {
  if (link_.over()) return;
  link_.End();
  options_.on_over(status);
}

// --- For people and Prometheus ---

void EvaluatorSession::Collect(MetricSamples* out) const {
  link_.Collect(out);
  WorkerStats stats = stats_;
  const Time spent = options_.loop->Now() - activity_began_;
  stats.AddTime(activity_ == Activity::kIdle      ? WorkerStats::kIdle
                : activity_ == Activity::kReading ? WorkerStats::kPull
                                                  : WorkerStats::kEvaluate,
                spent);
  stats.Collect(out);
}

absl::Status EvaluatorSession::CheckReady() const {
  if (link_.over()) return absl::FailedPreconditionError("the work is over");
  if (preparing_) return absl::UnavailableError("opening the job's data");
  return absl::OkStatus();
}

}  // namespace shoal
