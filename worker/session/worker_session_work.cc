// The part of WorkerSession that handles leased steps and test batches.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/log/logging.h"
#include "common/step_plan/round_message.h"
#include "worker/session/worker_session.h"

namespace shoal {
namespace {

// Limits on the work that a coordinator may lease ahead.
constexpr uint64_t kMaxLeases = 1 << 14;
constexpr size_t kMaxEvaluations = 1 << 10;

// The worker reports a finished step within this time. It reports earlier if the unreported steps
// exceed a quarter of its leases. One message per step would cost both ends more than a tiny step.
// One message for all leases would leave this worker without work.
constexpr Time kReportWithin = std::chrono::milliseconds(50);
constexpr int kReportPortions = 4;

}  // namespace

// Ignores leases of another timeline, which are normal after a restore. Logs and ignores a lease
// that no coordinator of this version sends; it expires like any lease that nobody works on.
void WorkerSession::OnLease(const proto::Lease& lease) {
  if (timeline_ == 0 || lease.timeline() != timeline_) return;
  const uint64_t total = prepared_->total_steps;
  const uint64_t room = kMaxLeases - std::min<uint64_t>(leases_.size(), kMaxLeases);
  if (lease.first() >= total || lease.count() == 0 || lease.count() > total - lease.first() ||
      lease.count() > room) {
    return LogWarning(absl::StrCat(
        "ignoring a lease of ", lease.count(), " steps from step ", lease.first(), ": the job has ",
        total, " steps, and this worker holds ", leases_.size(), " of at most ", kMaxLeases));
  }
  const std::optional<Round> round = RoundOf(lease);
  if (round &&
      !(round->Contains(lease.first()) && round->Contains(lease.first() + lease.count() - 1))) {
    return LogWarning(absl::StrCat("ignoring a lease of ", lease.count(), " steps from step ",
                                   lease.first(), ": its round has ", round->count,
                                   " steps from step ", round->first));
  }
  for (uint64_t i = 0; i < lease.count(); ++i) leases_.push_back({lease.first() + i, round});
  options_.computer->Prefetch(lease.first(), lease.count());
  Next();
}

// Answers at once, because the current step may be long, most of all a block of local steps. A halt
// need not wait for a step that has pushed no chunk.
void WorkerSession::OnHalt(const proto::Halt& halt) {
  if (timeline_ == 0 || halt.timeline() != timeline_) return;
  step_.Halt();
  // A stream that is being reopened takes no report. The steps stay unreported, and the coordinator
  // gets no answer.
  if (link_.welcomed()) ReportSteps();
  proto::WorkerReport report;
  report.mutable_halted()->set_timeline(timeline_);
  report.mutable_halted()->set_begun_below(step_.begun_below());
  link_.Send(report);
}

void WorkerSession::OnResume(const proto::Resume& resume) {
  if (timeline_ == 0 || resume.timeline() != timeline_) return;
  const size_t dropped = std::erase_if(
      leases_, [&resume](const LeasedStep& leased) { return leased.step >= resume.below(); });
  if (activity_ == Activity::kPulling && pulled_for_.has_value() &&
      pulled_for_->step >= resume.below())
    pulled_for_.reset();
  if (activity_ == Activity::kTraining && !step_.begun() && step_.number() >= resume.below()) {
    CancelCurrentStep();
  } else if (dropped > 0) {
    PrefetchLeases();
  }
  EndHalt();
}

void WorkerSession::EndHalt() {
  for (const auto& [ps, chunk] : step_.EndHalt()) OnChunk(ps, chunk);
  Next();
}

void WorkerSession::CancelCurrentStep() {
  ++work_;
  step_.Cancel();
  parameters_fresh_ = false;
  // The pull itself is not cancelled.
  pulled_for_.reset();
  Begin(exchange_->pulling() ? Activity::kPulling : Activity::kIdle);
  options_.computer->CancelAll();
  PrefetchLeases();
  for (const EvaluationOrder& order : evaluations_)
    options_.computer->PrefetchEvaluation(order.batch);
}

void WorkerSession::PrefetchLeases() {
  options_.computer->CancelPrefetch();
  for (const LeasedStep& leased : leases_) options_.computer->Prefetch(leased.step, 1);
}

void WorkerSession::OnEvaluate(const proto::Evaluate& evaluate) {
  if (timeline_ == 0 || evaluate.timeline() != timeline_ || draining_) return;
  const uint64_t batches = prepared_->test_batches;
  if (evaluate.cut_step() == 0 || evaluate.batch() >= batches ||
      evaluations_.size() >= kMaxEvaluations) {
    return LogWarning(absl::StrCat(
        "ignoring an order to evaluate batch ", evaluate.batch(), " on the cut at step ",
        evaluate.cut_step(), ": the test set has ", batches, " batches, and ", evaluations_.size(),
        " of at most ", kMaxEvaluations, " orders are pending"));
  }
  evaluations_.push_back({evaluate.cut_step(), evaluate.batch()});
  options_.computer->PrefetchEvaluation(evaluate.batch());
  Next();
}

void WorkerSession::Next() {
  if (link_.over() || activity_ != Activity::kIdle || computing_) return;
  if (MayLeave() || (draining_ && options_.loop->Now() >= no_step_after_))
    return Leave(absl::OkStatus());
  if (timeline_ == 0) return;
  if (!evaluations_.empty()) {
    const EvaluationOrder order = evaluations_.front();
    if (order.cut_step != pulled_cut_step_) return PullCut(order);
    evaluations_.pop_front();
    return Evaluate(order);
  }
  if (leases_.empty() || step_.halted()) return;
  if (!ParametersFit(leases_.front())) return PullParametersFor(leases_.front());
  Train();
}

void WorkerSession::Begin(Activity activity) {
  const Time now = options_.loop->Now();
  if (const auto phase = PhaseOf(activity_)) stats_.AddTime(*phase, now - activity_began_);
  activity_ = activity;
  activity_began_ = now;
}

bool WorkerSession::ParametersFit(const LeasedStep& leased) const {
  return leased.round ? parameters_version_ == leased.round->first : parameters_fresh_;
}

void WorkerSession::PullParametersFor(const LeasedStep& leased) {
  Begin(Activity::kPulling);
  parameters_fresh_ = false;
  parameters_version_.reset();
  pulled_for_ = leased;
  if (!leased.round)
    return exchange_->PullAll([this] { OnPulled(std::nullopt, absl::OkStatus()); });
  const uint64_t version = leased.round->first;
  exchange_->PullVersion(
      version, [this, version](const absl::Status& status) { OnPulled(version, status); });
}

void WorkerSession::OnPulled(const std::optional<uint64_t>& version, const absl::Status& status) {
  const std::optional<LeasedStep> pulled_for = std::exchange(pulled_for_, std::nullopt);
  const bool begun = activity_ == Activity::kTraining;
  if (!status.ok()) {
    if (begun) {
      ++work_;
      activity_ = Activity::kPulling;  // all time of the step counts as pull
      options_.computer->CancelStep();
      leases_.push_front(*pulled_for);
    }
    Begin(Activity::kIdle);
    return OnRoundComplete(*version);
  }
  parameters_version_ = version;
  if (begun) return BeginPushes(pulled_for->round);
  // If the pull's step was revoked, a later lease needs later values.
  parameters_fresh_ = !version.has_value() && pulled_for.has_value();
  Begin(Activity::kIdle);
  Next();
}

void WorkerSession::OnArrived(int ps, int chunk) {
  if (activity_ == Activity::kPulling) return MaybeTrainEarly();
  options_.computer->Arrived(ps, chunk);
}

// Checks the same conditions as Next(). After the last chunk, OnPulled() begins the step.
void WorkerSession::MaybeTrainEarly() {
  if (link_.over() || computing_ || Holds() || !evaluations_.empty()) return;
  if (!pulled_for_.has_value() || leases_.empty() || leases_.front().step != pulled_for_->step)
    return;
  if (!options_.computer->BeginsEarly() || !exchange_->gradients_are_free()) return;
  if (!exchange_->Missing().empty()) Train();
}

// Other workers have computed these steps, and may have ended before they reported them. So this
// worker reports the steps as done, without loss, metrics and times.
void WorkerSession::OnRoundComplete(uint64_t version) {
  std::erase_if(leases_, [this, version](const LeasedStep& leased) {
    if (!leased.round || leased.round->first > version) return false;
    proto::StepDone& done = *unreported_.add_steps();
    done.set_step(leased.step);
    done.set_already_applied(true);
    step_.CountAsBegun(leased.step);
    return true;
  });
  unreported_.set_timeline(timeline_);
  PrefetchLeases();
  MaybeReportSteps();
  Next();
}

void WorkerSession::Train() {
  const LeasedStep leased = leases_.front();
  leases_.pop_front();
  Begin(Activity::kTraining);
  computing_ = true;
  step_.Begin(leased.step);
  if (!exchange_->pulling()) BeginPushes(leased.round);
  options_.computer->Train(step_.number(), exchange_->Missing(),
                           scope_.Guard([this, work = work_](int ps, int chunk) {
                             if (work == work_) OnChunk(ps, chunk);
                           }),
                           scope_.Guard([this, work = work_](absl::StatusOr<BatchOutcome> outcome) {
                             if (link_.over()) return;
                             computing_ = false;
                             if (work != work_) return Next();
                             OnComputed(std::move(outcome));
                           }));
}

void WorkerSession::BeginPushes(const std::optional<Round>& round) {
  // Pushes of a round bring no values. parameters_version_ covers further steps of the round.
  parameters_fresh_ = !round && step_.number() >= prepared_->pulls_below;
  exchange_->BeginStep(
      step_.number(),
      [this] {
        step_.Applied();
        MaybeFinishStep();
      },
      round);
}

void WorkerSession::OnChunk(int ps, int chunk) {
  SHOAL_CHECK(!exchange_->pulling(), "step ", step_.number());
  if (step_.MayPush({ps, chunk})) exchange_->PushChunk(ps, chunk);
}

void WorkerSession::OnComputed(absl::StatusOr<BatchOutcome> outcome) {
  if (!outcome.ok()) {
    Begin(Activity::kIdle);
    return Leave(outcome.status());
  }
  step_.Computed(*std::move(outcome));
  if (step_.outcome().skipped) PushSkip();
  MaybeFinishStep();
}

// Skips all chunks at once, because everybody waits for the end of this step.
void WorkerSession::PushSkip() {
  exchange_->SkipGradient();
  const ShardMap& shard_map = *prepared_->shard_map;
  for (int ps = 0; ps < shard_map.ps_count(); ++ps) {
    const std::vector<Chunk>& chunks = shard_map.ps(ps).chunks;
    for (int chunk = 0; chunk < static_cast<int>(chunks.size()); ++chunk) {
      if (chunks[chunk].pushed()) OnChunk(ps, chunk);
    }
  }
}

void WorkerSession::MaybeFinishStep() {
  if (!step_.done()) return;
  const BatchOutcome& outcome = step_.outcome();
  const Time took = options_.loop->Now() - activity_began_;
  *unreported_.add_steps() = step_.Report(took);
  unreported_.set_timeline(timeline_);
  stats_.StepDone(outcome, took);
  const std::string waiting =
      input_wait_share_.StepDone(std::chrono::microseconds(outcome.input_wait_us), took);
  if (!waiting.empty()) LogInfo(waiting);
  if (options_.on_step != nullptr) options_.on_step(timeline_, step_.number());
  Begin(Activity::kIdle);
  MaybeReportSteps();
  Next();
}

void WorkerSession::MaybeReportSteps() {
  if (!link_.welcomed()) return;  // SendReady() reports them
  if (unreported_.steps_size() * uint64_t{kReportPortions} > leases_.size()) return ReportSteps();
  if (report_due_.pending()) return;
  report_due_.Set(kReportWithin, [this] {
    if (link_.welcomed() && !link_.over()) ReportSteps();
  });
}

void WorkerSession::ReportSteps() {
  report_due_.Cancel();
  if (unreported_.steps_size() == 0) return;
  proto::WorkerReport report;
  report.mutable_steps_done()->Swap(&unreported_);
  link_.Send(report);
}

void WorkerSession::PullCut(const EvaluationOrder& order) {
  Begin(Activity::kPullingCut);
  exchange_->PullCut(order.cut_step, prepared_->cut_parameters, [this, order](absl::Status status) {
    // Another timeline, or none, has begun; its handler calls Next().
    if (absl::IsCancelled(status)) return;
    Begin(Activity::kIdle);
    if (status.ok()) {
      pulled_cut_step_ = order.cut_step;
    } else {
      // The coordinator cancelled this evaluation; its other batches are void.
      std::erase_if(evaluations_, [&order](const EvaluationOrder& each) {
        return each.cut_step == order.cut_step;
      });
      options_.computer->CancelEvaluationPrefetch();
      for (const EvaluationOrder& each : evaluations_)
        options_.computer->PrefetchEvaluation(each.batch);
    }
    Next();
  });
}

void WorkerSession::Evaluate(const EvaluationOrder& order) {
  Begin(Activity::kEvaluating);
  computing_ = true;
  options_.computer->Evaluate(
      order.batch, scope_.Guard([this, work = work_, order](absl::StatusOr<BatchOutcome> outcome) {
        if (link_.over()) return;
        computing_ = false;
        if (work != work_) return Next();
        Begin(Activity::kIdle);
        if (!outcome.ok()) return Leave(outcome.status());
        proto::WorkerReport report;
        proto::EvaluationDone* done = report.mutable_evaluation_done();
        done->set_timeline(timeline_);
        done->set_cut_step(order.cut_step);
        done->set_batch(order.batch);
        done->set_examples(outcome->examples);
        done->set_loss_sum(outcome->loss_sum);
        for (const double sum : outcome->metric_sums) done->add_metric_sums(sum);
        link_.Send(report);
        Next();
      }));
}

}  // namespace shoal
