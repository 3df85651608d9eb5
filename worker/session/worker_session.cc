#include "worker/session/worker_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "worker/session/other_job.h"

namespace shoal {
namespace {

// A leaving worker waits at most this long for the coordinator to close the stream.
constexpr Time kLeaveTimeout = std::chrono::seconds(1);

// Limits on a welcome: the number of ps, and the length of an address.
constexpr int kMaxPs = 65536;
constexpr size_t kMaxAddressBytes = 512;

// A stream that lasts this long resets the backoff.
constexpr Time kSettled = std::chrono::seconds(1);

// The worker logs a wait that is longer than this, again and again.
constexpr Time kWatchPeriod = std::chrono::seconds(5);

}  // namespace

WorkerSession::WorkerSession(Options options)
    : options_(std::move(options)),
      backoff_(std::chrono::milliseconds(50), std::chrono::seconds(1), options_.incarnation) {}

void WorkerSession::Start() {
  alone_since_ = activity_began_ = options_.loop->Now();
  watch_.Set(kWatchPeriod, [this] { WatchWaits(); });
  LogInfo("looking for the coordinator at " + options_.chief);
  Open();
}

// Promise 8: nothing waits in silence.
void WorkerSession::WatchWaits() {
  watch_.Set(kWatchPeriod, [this] { WatchWaits(); });
  const Time now = options_.loop->Now();
  if (!welcomed_) {
    LogWarning(refused_ ? NoCoordinator()
                        : absl::StrCat("waiting for the coordinator at ", options_.chief, " since ",
                                       WholeSeconds(now - alone_since_), " s: ", Trouble()));
  }
  if (now - activity_began_ < kWatchPeriod) return;
  const std::string since = absl::StrCat(" since ", WholeSeconds(now - activity_began_), " s");
  if (activity_ == Activity::kIdle) {
    if (computing_ || !welcomed_ || !prepared_.has_value()) return;
    LogWarning(absl::StrCat("waiting for the coordinator at ", options_.chief, " to ",
                            timeline_ == 0 ? "open a timeline" : "hand out steps", since));
    return;
  }
  const std::string what = Doing() + since;
  if (!Computes()) LogWarning("waiting: " + what);
  if (!welcomed_) return;
  proto::WorkerReport report;
  report.mutable_waiting()->set_what(what);
  report.mutable_waiting()->set_computing(Computes());
  Report(report);
}

std::string WorkerSession::Trouble() const {
  if (options_.network->LooksUp(options_.chief)) return "looking up the name";
  return last_error_.empty() ? "no answer" : last_error_;
}

std::string WorkerSession::NoCoordinator() const {
  return absl::StrCat(refused_ ? "not let in by the coordinator at " : "no coordinator at ",
                      options_.chief, " since ", WholeSeconds(options_.loop->Now() - alone_since_),
                      " s: ", last_error_);
}

std::string WorkerSession::Batches() const {
  const StepComputer::Progress progress = options_.computer->progress();
  if (progress.batches <= 1) return "";
  return absl::StrCat(", batch ", progress.batches_done + 1, " of ", progress.batches, ",");
}

std::string WorkerSession::Doing() const {
  switch (activity_) {
    case Activity::kIdle:
      return "idle";
    case Activity::kPulling:
      return "pulling the parameters from " + exchange_->Waiting();
    case Activity::kPullingCut:
      return "pulling the parameters of a cut from " + exchange_->Waiting();
    case Activity::kTraining:
      if (exchange_->pulling())
        return absl::StrCat("pulling the parameters of step ", step_, " from ",
                            exchange_->Waiting());
      if (computing_) return absl::StrCat("computing step ", step_, Batches());
      return absl::StrCat("pushing the gradient of step ", step_, " to ", exchange_->Waiting());
    case Activity::kEvaluating:
      return "evaluating a batch of the test set";
  }
  return "";
}

// --- The stream to the coordinator ---

void WorkerSession::Open() {
  if (over_) return;
  welcomed_ = false;
  stream_ =
      options_.network->Open(options_.chief, kWorkMethod,
                             {.on_message = [this](Message message) { OnMessage(message); },
                              .on_closed = [this](absl::Status status) { OnClosed(status); }});
  SendHello();
}

void WorkerSession::SendHello() {
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
  if (activity_ == Activity::kTraining) hello->add_held_steps(step_);
  for (const LeasedStep& leased : leases_) hello->add_held_steps(leased.step);
  Report(report);
}

void WorkerSession::Report(const proto::WorkerReport& report) {
  if (stream_ != nullptr) stream_->Send(MakeMessage(report));
}

void WorkerSession::OnClosed(const absl::Status& status) {
  stream_.reset();
  no_more_leases_ = false;
  // A coordinator that rejects this worker closes the stream with OK.
  if (!refused_ || !status.ok()) {
    refused_ = false;
    last_error_ = Printable(std::string(status.message()), kMaxReasonBytes);
  }
  if (over_) return FinishLeaving();
  const bool was_welcomed = std::exchange(welcomed_, false);
  if (MayLeave()) return Over(End::kDrained, absl::OkStatus());
  const Time now = options_.loop->Now();
  // A coordinator may welcome and break again and again. The backoff goes on for it.
  if (const Time at = std::exchange(welcomed_at_, Time{}); at != Time{} && now - at >= kSettled)
    backoff_.Reset();
  if (was_welcomed) {
    alone_since_ = now;
    lost_ = true;
    LogWarning(absl::StrCat("lost the coordinator at ", options_.chief, ": ",
                            absl::StripPrefix(last_error_, options_.chief + ": ")));
  }
  if (now - alone_since_ >= options_.coordinator_timeout) {
    return Over(End::kNoCoordinator, absl::UnavailableError(NoCoordinator()));
  }
  retry_.Set(backoff_.Next(), [this] { Open(); });
  EndHalt();  // the coordinator that halted it may be gone
}

void WorkerSession::OnMessage(const Message& message) {
  if (over_) return;
  proto::WorkerOrder order;
  if (!ParseMessage(message, &order)) {
    return Over(End::kFailed,
                absl::FailedPreconditionError(
                    options_.chief + " does not speak as a coordinator of this version does"));
  }
  switch (order.kind_case()) {
    case proto::WorkerOrder::kWelcome:
      return OnWelcome(order.welcome());
    case proto::WorkerOrder::kRejected: {
      const std::string reason = PrintableLines(order.rejected().reason(), kMaxReasonBytes);
      const std::string why = "the coordinator says: " + reason;
      if (order.rejected().other_job()) return OverOfOtherCluster(why);
      if (order.rejected().final()) return Over(End::kFailed, absl::FailedPreconditionError(why));
      // WatchWaits() logs a repeated reason.
      if (!refused_ || last_error_ != reason) LogWarning(why);
      refused_ = true;
      last_error_ = reason;
      // The worker reports steps that finish from here on over the next stream.
      if (std::exchange(welcomed_, false)) alone_since_ = options_.loop->Now();
      return;
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
  welcomed_ = true;
  refused_ = false;
  welcomed_at_ = options_.loop->Now();
  if (std::exchange(lost_, false)) {
    LogInfo(absl::StrCat("back with the coordinator at ", options_.chief, " after ",
                         WholeSeconds(welcomed_at_ - alone_since_), " s"));
  }
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
      return OverOfOtherCluster(OtherJob(options_.chief, job, job_fingerprint_));
    if (ps != ps_)
      return OverOfOtherCluster("the cluster has other ps now; start the worker again");
    if (prepared_.has_value()) SendReady();
    return;
  }
  ps_ = ps;
  job_fingerprint_ = job;
  LogInfo(absl::StrCat("taking part as worker ", *index_));
  preparing_ = true;
  options_.computer->Prepare(welcome.job(), static_cast<int>(ps_.size()),
                             scope_.Guard([this](absl::StatusOr<StepComputer::Prepared> prepared) {
                               if (!over_) OnPrepared(std::move(prepared));
                             }));
}

absl::Status WorkerSession::CheckWelcome(const proto::Welcome& welcome) const {
  const auto wrong = [this](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options_.chief, " ", what,
                     ": it is none of this version; give --chief the address of the job's"));
  };
  if (options_.index.has_value() && welcome.index() != *options_.index) {
    return wrong(absl::StrCat("calls worker ", *options_.index, " by the index ", welcome.index()));
  }
  if (welcome.ps().empty() || welcome.ps_size() > kMaxPs) {
    return wrong(absl::StrCat("names ", welcome.ps_size(), " ps, where there are 1 to ", kMaxPs));
  }
  for (const std::string& address : welcome.ps()) {
    if (address.empty() || address.size() > kMaxAddressBytes) {
      return wrong(absl::StrCat("names a ps by an address of ", address.size(),
                                " bytes, where one has 1 to ", kMaxAddressBytes));
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
              if (over_) return;
              if (!absl::IsAborted(status)) return Leave(status);
              OverOfOtherCluster(std::string(status.message()));
            }));
          }});
  if (draining_) return Leave(absl::OkStatus());
  if (welcomed_) SendReady();
}

void WorkerSession::SendReady() {
  if (activity_ == Activity::kIdle) Begin(Activity::kIdle);  // to wait for work
  proto::WorkerReport report;
  report.mutable_ready()->set_training_examples(prepared_->training_examples);
  report.mutable_ready()->set_test_examples(prepared_->test_examples);
  report.mutable_ready()->set_shard_map_fingerprint(prepared_->shard_map->Fingerprint());
  report.mutable_ready()->set_job_fingerprint(job_fingerprint_);
  Report(report);
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
  cut_here_ = 0;
  exchange_->SetTimeline(timeline);
  Next();
}

// Rule 4: this timeline is over, and the worker drops all its work.
void WorkerSession::OnTimelineLost(const std::string& why) {
  LogWarning("the timeline is over: " + Printable(why, kMaxReasonBytes));
  proto::WorkerReport report;
  report.mutable_timeline_lost()->set_timeline(timeline_);
  Report(report);
  DropWork(0);
  Next();
}

void WorkerSession::DropWork(uint64_t timeline) {
  timeline_ = timeline;
  ++work_;
  leases_.clear();
  halted_ = false;
  held_back_.clear();
  pulled_for_.reset();
  begun_below_ = 0;
  evaluations_.clear();
  unreported_.Clear();
  Begin(Activity::kIdle);
  options_.computer->Abandon();
}

// --- The end ---

void WorkerSession::Drain(const std::string& reason) {
  if (draining_ || over_) return;
  draining_ = true;
  drain_reason_ = reason;
  LogInfo("draining: " + reason);
  no_step_after_ = options_.loop->Now() + options_.drain_timeout / 2;
  evaluations_.clear();
  drain_deadline_.Set(options_.drain_timeout, [this] {
    if (over_) return FinishLeaving();
    SendLeaving(absl::OkStatus());
    Over(End::kDrained, absl::OkStatus());
  });
  if (MayLeave()) return Leave(absl::OkStatus());
  SendDraining();
}

void WorkerSession::SendDraining() {
  proto::WorkerReport report;
  report.mutable_draining();
  Report(report);
}

void WorkerSession::SendLeaving(const absl::Status& why) {
  if (welcomed_) ReportSteps();
  proto::WorkerReport report;
  // The names of data files can be any bytes; strings of messages are UTF-8.
  report.mutable_leaving()->set_reason(
      why.ok() ? drain_reason_ : PrintableLines(std::string(why.message()), kMaxReasonBytes));
  report.mutable_leaving()->set_failed(!why.ok());
  Report(report);
}

void WorkerSession::Leave(const absl::Status& why) {
  if (over_) return;
  SendLeaving(why);
  const End end = why.ok() ? End::kDrained : End::kFailed;
  if (stream_ == nullptr) return Over(end, why);
  // The coordinator closes the stream when it has read the message. This way it knows before the
  // process ends.
  over_ = true;
  leaving_ = {end, why};
  stream_->Finish(absl::OkStatus());
  leave_deadline_.Set(kLeaveTimeout, [this] { FinishLeaving(); });
}

void WorkerSession::FinishLeaving() {
  if (!leaving_.has_value()) return;
  const auto [end, why] = *std::exchange(leaving_, std::nullopt);
  options_.on_over(end, why);
}

void WorkerSession::OverOfOtherCluster(const std::string& why) {
  if (draining_) return Over(End::kDrained, absl::OkStatus());
  Over(End::kNoCoordinator, absl::UnavailableError(why));
}

void WorkerSession::Over(End end, const absl::Status& status) {
  if (over_) return;
  over_ = true;
  options_.on_over(end, status);
}

}  // namespace shoal
