#include "worker/session/worker_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "worker/job/data_error.h"
#include "worker/session/other_job.h"

namespace shoal {
namespace {

// Limits on a welcome: the number of ps, and the length of an address.
constexpr int kMaxPs = 65536;
constexpr size_t kMaxAddressBytes = 512;

// The worker logs a wait that is longer than this, again and again.
constexpr Time kWatchPeriod = std::chrono::seconds(5);

}  // namespace

WorkerSession::WorkerSession(Options options)
    : options_(std::move(options)),
      link_({.loop = options_.loop,
             .network = options_.network,
             .coordinator = options_.coordinator,
             .method = kWorkMethod,
             .seed = options_.incarnation,
             .timeout = options_.coordinator_timeout,
             .on_open = [this] { SendHello(); },
             .on_message = [this](const Message& message) { OnMessage(message); },
             .on_closed = [this] { OnClosed(); },
             .is_quiet = [this] { return IsQuiet(); },
             .on_reopen = [this] { SendReopening(); }}) {}

void WorkerSession::Start() {
  activity_began_ = options_.loop->Now();
  link_.Start();
  watch_.Set(kWatchPeriod, [this] { WatchWaits(); });
}

// Promise 8: nothing waits in silence. The link logs the wait for the coordinator itself.
void WorkerSession::WatchWaits() {
  watch_.Set(kWatchPeriod, [this] { WatchWaits(); });
  const Time now = options_.loop->Now();
  if (now - activity_began_ < kWatchPeriod) return;
  const std::string waited = absl::StrCat("for ", WholeSeconds(now - activity_began_), " s");
  if (activity_ == Activity::kIdle) {
    if (computing_ || !link_.welcomed() || !prepared_.has_value()) return;
    LogWarning(absl::StrCat("waiting for the coordinator at ", options_.coordinator, " to ",
                            timeline_ == 0 ? "open a timeline" : "lease steps", ", ", waited));
    return;
  }
  const std::string what = absl::StrCat(CurrentActivity(), " ", waited);
  if (!Computes()) LogWarning("waiting: " + what);
  if (!link_.welcomed()) return;
  proto::WorkerReport report;
  report.mutable_waiting()->set_what(what);
  report.mutable_waiting()->set_computing(Computes());
  link_.Send(report);
}

std::string WorkerSession::Batches() const {
  const StepComputer::Progress progress = options_.computer->progress();
  if (progress.batches <= 1) return "";
  return absl::StrCat(", batch ", progress.batches_done + 1, " of ", progress.batches, ",");
}

std::string WorkerSession::CurrentActivity() const {
  switch (activity_) {
    case Activity::kIdle:
      return "idle";
    case Activity::kPulling:
      return "pulling the parameters from " + exchange_->Waiting();
    case Activity::kPullingCut:
      return "pulling the parameters of a cut from " + exchange_->Waiting();
    case Activity::kTraining:
      if (exchange_->pulling())
        return absl::StrCat("pulling the parameters of step ", step_.number(), " from ",
                            exchange_->Waiting());
      if (computing_) return absl::StrCat("computing step ", step_.number(), Batches());
      return absl::StrCat("pushing the gradient of step ", step_.number(), " to ",
                          exchange_->Waiting());
    case Activity::kEvaluating:
      return "evaluating a batch of the test set";
  }
  return "";
}

// --- The stream to the coordinator ---

void WorkerSession::SendHello() {
  no_more_leases_ = false;
  proto::WorkerReport report;
  proto::WorkerHello* hello = report.mutable_hello();
  hello->set_version(kVersion);
  if (options_.index.has_value()) hello->set_index(*options_.index);
  hello->set_host(options_.host);
  hello->set_pid(options_.pid);
  hello->set_device(options_.device);
  hello->set_threads(options_.threads);
  hello->set_incarnation(options_.incarnation);
  hello->set_timeline(timeline_);
  if (activity_ == Activity::kTraining) hello->add_held_steps(step_.number());
  for (const LeasedStep& leased : leases_) hello->add_held_steps(leased.step);
  if (reopening_) {
    for (const proto::StepDone& done : unreported_.steps()) hello->add_held_steps(done.step());
  }
  link_.Send(report);
}

bool WorkerSession::IsQuiet() const {
  return prepared_.has_value() && !draining_ && !step_.halted() && evaluations_.empty() &&
         activity_ != Activity::kPullingCut && activity_ != Activity::kEvaluating;
}

void WorkerSession::SendReopening() {
  ReportSteps();
  reopening_ = true;
  proto::WorkerReport report;
  report.mutable_reopening();
  link_.Send(report);
}

void WorkerSession::OnClosed() {
  no_more_leases_ = false;
  if (MayLeave()) return Over(End::kDrained, absl::OkStatus());
  if (const absl::Status retried = link_.Retry(); !retried.ok())
    return Over(End::kNoCoordinator, retried);
  EndHalt();  // the coordinator that halted it may be gone
}

void WorkerSession::OnMessage(const Message& message) {
  proto::WorkerOrder order;
  if (const absl::Status parsed = link_.Parse(message, &order); !parsed.ok())
    return Over(End::kFailed, parsed);
  switch (order.kind_case()) {
    case proto::WorkerOrder::kWelcome:
      return OnWelcome(order.welcome());
    case proto::WorkerOrder::kRejected: {
      const absl::Status rejected = link_.Rejected(order.rejected());
      if (absl::IsUnavailable(rejected)) return EndForOtherCluster(rejected);
      if (!rejected.ok()) return Over(End::kFailed, rejected);
      return;  // the worker reports steps that finish from here on over the next stream
    }
    case proto::WorkerOrder::kTimelineOpened:
      return OnTimelineOpened(order.timeline_opened().timeline());
    case proto::WorkerOrder::kLease:
      return OnLease(order.lease());
    case proto::WorkerOrder::kHalt:
      return OnHalt(order.halt());
    case proto::WorkerOrder::kResume:
      return OnResume(order.resume());
    case proto::WorkerOrder::kEvaluate:
      return OnEvaluate(order.evaluate());
    case proto::WorkerOrder::kDrain:
      no_more_leases_ = true;
      if (draining_) return MayLeave() ? Leave(absl::OkStatus()) : Next();
      return Drain("the coordinator says: " +
                   PrintableLines(order.drain().reason(), kMaxReasonBytes));
    case proto::WorkerOrder::kJobDone:
      if (const std::string& failure = order.job_done().failure(); !failure.empty())
        LogInfo("the job has failed: " + PrintableLines(failure, kMaxReasonBytes));
      return Over(End::kJobDone, absl::OkStatus());
    case proto::WorkerOrder::KIND_NOT_SET:
      return;
  }
}

void WorkerSession::OnWelcome(const proto::Welcome& welcome) {
  if (const absl::Status sound = CheckWelcome(welcome); !sound.ok())
    return Over(End::kFailed, sound);
  link_.Welcomed();
  reopening_ = false;
  // A later coordinator may assign another index to a worker that is not in the cluster spec.
  if (index_ != welcome.index()) {
    index_ = welcome.index();
    if (exchange_ != nullptr) exchange_->SetWorker(*index_);
    if (options_.on_index != nullptr) options_.on_index(*index_);
  }
  const std::vector<std::string> ps(welcome.ps().begin(), welcome.ps().end());
  const uint32_t job = JobFingerprint(welcome.job());
  if (prepared_.has_value() || preparing_) {
    if (job != job_fingerprint_)
      return EndForOtherCluster(OtherJob(options_.coordinator, job, job_fingerprint_));
    if (ps != ps_)
      return EndForOtherCluster(
          absl::UnavailableError("the cluster has other ps now; start the worker again"));
    if (prepared_.has_value()) SendReady();
    return;
  }
  ps_ = ps;
  job_fingerprint_ = job;
  LogInfo(absl::StrCat("taking part as worker ", *index_));
  preparing_ = true;
  options_.computer->Prepare(welcome.job(), static_cast<int>(ps_.size()),
                             scope_.Guard([this](absl::StatusOr<StepComputer::Prepared> prepared) {
                               if (!link_.over()) OnPrepared(std::move(prepared));
                             }));
}

absl::Status WorkerSession::CheckWelcome(const proto::Welcome& welcome) const {
  const auto wrong = [this](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options_.coordinator, " ", what,
                     "; set --chief to the address of this job's coordinator"));
  };
  if (options_.index.has_value() && welcome.index() != *options_.index) {
    return wrong(absl::StrCat("assigns index ", welcome.index(), " to worker ", *options_.index));
  }
  if (welcome.ps().empty() || welcome.ps_size() > kMaxPs) {
    return wrong(absl::StrCat("lists ", welcome.ps_size(), " ps, not 1 to ", kMaxPs));
  }
  for (const std::string& address : welcome.ps()) {
    if (address.empty() || address.size() > kMaxAddressBytes) {
      return wrong(absl::StrCat("lists a ps with an address of ", address.size(),
                                " bytes, not 1 to ", kMaxAddressBytes));
    }
  }
  return absl::OkStatus();
}

void WorkerSession::OnPrepared(absl::StatusOr<StepComputer::Prepared> prepared) {
  preparing_ = false;
  if (!prepared.ok()) return Leave(prepared.status());
  prepared_ = *std::move(prepared);
  options_.network->KeepFree(prepared_->memory_bytes);
  options_.network->Lend(prepared_->gradients_memory);
  exchange_ = std::make_unique<ParameterExchange>(ParameterExchange::Options{
      .loop = options_.loop,
      .network = options_.network,
      .shard_map = prepared_->shard_map,
      .layout = prepared_->layout,
      .worker = *index_,
      .job_fingerprint = job_fingerprint_,
      .addresses = ps_,
      .parameters = prepared_->parameters,
      .gradients = prepared_->gradients,
      .gradients_owner = prepared_->gradients_owner,
      .pulls_below = prepared_->pulls_below,
      .push_codec = prepared_->push_codec,
      .pull_codec = prepared_->pull_codec,
      .on_arrived = [this](int ps, int chunk) { OnArrived(ps, chunk); },
      .on_timeline_lost = [this](const std::string& why) { OnTimelineLost(why); },
      .on_failed =
          [this](const absl::Status& status) {
            // Posted, so that this does not run inside a callback of the exchange.
            options_.loop->Post(scope_.Guard([this, status] {
              if (link_.over()) return;
              if (!absl::IsAborted(status)) return Leave(status);
              EndForOtherCluster(absl::UnavailableError(status.message()));
            }));
          }});
  if (draining_) return Leave(absl::OkStatus());
  if (link_.welcomed()) SendReady();
}

void WorkerSession::SendReady() {
  if (activity_ == Activity::kIdle) Begin(Activity::kIdle);  // to wait for work
  proto::WorkerReport report;
  report.mutable_ready()->set_training_examples(prepared_->training_examples);
  report.mutable_ready()->set_test_examples(prepared_->test_examples);
  report.mutable_ready()->set_shard_map_fingerprint(prepared_->shard_map->Fingerprint());
  report.mutable_ready()->set_job_fingerprint(job_fingerprint_);
  link_.Send(report);
  if (draining_) SendDraining();
  // Steps that finished while there was no coordinator still count.
  ReportSteps();
}

// --- Timelines and leases ---

void WorkerSession::OnTimelineOpened(uint64_t timeline) {
  if (exchange_ == nullptr || timeline == 0) return;
  if (timeline == timeline_) {
    return EndHalt();  // the timeline continues, and the reason for the halt is gone
  }
  LogInfo("working in timeline " + TermText(timeline));
  DropWork(timeline);
  parameters_fresh_ = false;
  parameters_version_.reset();
  pulled_cut_step_ = 0;
  exchange_->SetTimeline(timeline);
  Next();
}

// Rule 4: this timeline is over, and the worker drops all its work.
void WorkerSession::OnTimelineLost(const std::string& why) {
  LogWarning("the timeline is over: " + Printable(why, kMaxReasonBytes));
  proto::WorkerReport report;
  report.mutable_timeline_lost()->set_timeline(timeline_);
  link_.Send(report);
  DropWork(0);
  Next();
}

void WorkerSession::DropWork(uint64_t timeline) {
  timeline_ = timeline;
  ++work_;
  leases_.clear();
  step_.Reset();
  pulled_for_.reset();
  evaluations_.clear();
  unreported_.Clear();
  Begin(Activity::kIdle);
  options_.computer->CancelAll();
}

// --- The end ---

void WorkerSession::Drain(const std::string& reason) {
  if (draining_ || link_.over()) return;
  draining_ = true;
  drain_reason_ = reason;
  LogInfo("draining: " + reason);
  no_step_after_ = options_.loop->Now() + options_.drain_timeout / 2;
  evaluations_.clear();
  drain_deadline_.Set(options_.drain_timeout, [this] {
    if (link_.over()) return link_.StopWaiting();
    SendLeaving(absl::OkStatus());
    Over(End::kDrained, absl::OkStatus());
  });
  if (MayLeave()) return Leave(absl::OkStatus());
  SendDraining();
}

void WorkerSession::SendDraining() {
  proto::WorkerReport report;
  report.mutable_draining();
  link_.Send(report);
}

void WorkerSession::SendLeaving(const absl::Status& why) {
  if (link_.welcomed()) ReportSteps();
  proto::WorkerReport report;
  // The names of data files can be any bytes; strings of messages are UTF-8.
  report.mutable_leaving()->set_reason(
      why.ok() ? drain_reason_
               : PrintableLines(TextForCoordinator(why, options_.may_quote_data), kMaxReasonBytes));
  report.mutable_leaving()->set_failed(!why.ok());
  link_.Send(report);
}

void WorkerSession::Leave(const absl::Status& why) {
  if (link_.over()) return;
  SendLeaving(why);
  const End end = why.ok() ? End::kDrained : End::kFailed;
  link_.Leave([this, end, why] { options_.on_over(end, why); });
}

void WorkerSession::EndForOtherCluster(const absl::Status& why) {
  if (draining_) return Over(End::kDrained, absl::OkStatus());
  Over(End::kNoCoordinator, why);
}

void WorkerSession::Over(End end, const absl::Status& status) {
  if (link_.over()) return;
  link_.End();
  options_.on_over(end, status);
}

}  // namespace shoal
