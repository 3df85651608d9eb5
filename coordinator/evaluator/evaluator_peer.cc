#include "coordinator/evaluator/evaluator_peer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

constexpr int kSeat = 0;  // the only one

}  // namespace

EvaluatorPeer::EvaluatorPeer(Options options)
    : options_(std::move(options)),
      admission_({.loop = options_.loop,
                  .job_fingerprint = JobFingerprint(options_.job_text),
                  .newcomer = "an evaluator",
                  .message = [](const proto::Rejected& rejected) {
                    proto::EvaluatorOrder order;
                    *order.mutable_rejected() = rejected;
                    return MakeMessage(order);
                  }}) {}

StreamCallbacks EvaluatorPeer::Accept(std::unique_ptr<Stream> stream) {
  const uint64_t key = admission_.Add(std::move(stream));
  return {.on_message = [this, key](Message message) { OnMessage(key, message); },
          .on_closed = [this, key](absl::Status status) { OnClosed(key, status); }};
}

bool EvaluatorPeer::present() const {
  return up() || (was_up_ && options_.loop->Now() - lost_at_ < kEvaluatorPatience);
}

void EvaluatorPeer::Reject(const std::string& reason, bool final) {
  Reject(MakeRejected(reason, final));
}

void EvaluatorPeer::Reject(const proto::Rejected& rejected) {
  if (stream_ == nullptr) return;
  admission_.RejectSeated(key_, std::move(stream_), "the evaluator", rejected);
  if (rejected.final()) was_up_ = false;
  Gone(State::kLost, rejected.reason());
}

void EvaluatorPeer::EndJob(const std::string& failure) {
  job_done_.emplace().mutable_job_done()->set_failure(failure);
  if (connected()) Send(*job_done_);
}

uint64_t EvaluatorPeer::restarts() const {
  const auto seat = admission_.seats().find(kSeat);
  return seat == admission_.seats().end() ? 0 : seat->second.restarts;
}

void EvaluatorPeer::OnMessage(uint64_t key, const Message& message) {
  const bool known = key == key_ && stream_ != nullptr;
  if (!known && admission_.joining(key) == nullptr) return;
  proto::EvaluatorReport report;
  if (!ParseMessage(message, &report)) {
    const std::string peer = known ? stream_->peer() : admission_.joining(key)->peer();
    const std::string reason(
        InvalidMessageError("the evaluator at " + peer, report.GetTypeName()).message());
    return known ? Reject(reason, /*final=*/true)
                 : admission_.RejectJoining(key, reason, /*final=*/true);
  }
  if (!known) {
    if (report.has_hello()) return OnHello(key, report.hello());
    return admission_.RejectJoining(
        key,
        "the first message of an evaluator must be its hello, but this process sent another one",
        /*final=*/true);
  }
  switch (report.kind_case()) {
    case proto::EvaluatorReport::kHello:
      return Reject("this evaluator sent its hello twice on one stream", /*final=*/true);
    case proto::EvaluatorReport::kReady:
      return OnReady(report.ready());
    case proto::EvaluatorReport::kLeaving: {
      const std::string reason = PrintableLines(report.leaving().reason(), kMaxReasonBytes);
      LogWarning("the evaluator leaves: " + reason);
      admission_.KeepUntilClosed(key_, std::move(stream_));
      was_up_ = false;
      return Gone(State::kLeft, reason);
    }
    default:
      if (up()) options_.on_report(report);
  }
}

void EvaluatorPeer::OnHello(uint64_t key, const proto::EvaluatorHello& hello) {
  absl::Status fits = CheckVersion(
      hello.version(), absl::StrCat("the evaluator at ", admission_.joining(key)->peer()));
  fits.Update(options_.usable);
  if (!fits.ok()) return admission_.RejectJoining(key, std::string(fits.message()), /*final=*/true);
  if (stream_ != nullptr) {
    if (!admission_.IsLastIn(kSeat, hello.incarnation())) {
      return admission_.RejectClaim(
          key, kSeat,
          absl::StrCat("there is an evaluator already, and it is alive: ", address_, ", at ",
                       stream_->peer(),
                       ". A cluster has one evaluator. To replace the other one, end it"));
    }
    // The same evaluator has a new stream: its old one broke, but this was not noticed yet.
    stream_.reset();
    Gone(State::kLost, "it has opened a new stream");
  }
  key_ = key;
  stream_ = admission_.Admit(key, kSeat, hello.incarnation());
  state_ = State::kPreparing;
  detail_.clear();
  address_ = absl::StrCat(Printable(hello.host(), kMaxNameBytes), ", pid ", hello.pid());
  LogInfo(absl::StrCat("the evaluator has joined (", address_, ", ",
                       Printable(hello.device(), kMaxNameBytes), ", ", hello.threads(),
                       hello.threads() == 1 ? " thread)" : " threads)"));
  if (job_done_.has_value()) return Send(*job_done_);
  proto::EvaluatorOrder order;
  order.mutable_welcome()->set_job(options_.job_text);
  Send(order);
}

void EvaluatorPeer::OnReady(const proto::EvaluatorReady& ready) {
  if (up()) return;
  if (const auto rejected = admission_.CheckJob(ready.job_fingerprint())) return Reject(*rejected);
  if (const absl::Status sound = options_.check_ready(ready); !sound.ok())
    return Reject(std::string(sound.message()), /*final=*/true);
  test_examples_ = ready.test_examples();
  state_ = State::kUp;
  was_up_ = true;
  LogInfo("the evaluator is ready");
  options_.on_ready();
}

void EvaluatorPeer::OnClosed(uint64_t key, const absl::Status& status) {
  admission_.OnClosed(key);
  if (key != key_ || stream_ == nullptr) return;
  stream_.reset();
  const std::string why = status.ok()
                              ? "it ended its stream"
                              : PrintableLines(std::string(status.message()), kMaxReasonBytes);
  const std::string text = absl::StrCat("the evaluator is gone (", why, ")");
  // OK: in order, for example at the end of the job.
  status.ok() ? LogInfo(text) : LogWarning(text);
  Gone(State::kLost, why);
}

void EvaluatorPeer::Gone(State state, const std::string& why) {
  key_ = 0;
  // The run does not wait for an evaluator that was never ready.
  if (up()) lost_at_ = options_.loop->Now();
  state_ = state;
  detail_ = why;
  options_.on_gone(state == State::kLeft);
}

const char* StateName(EvaluatorPeer::State state) {
  switch (state) {
    case EvaluatorPeer::State::kNone:
      return "none";
    case EvaluatorPeer::State::kPreparing:
      return "preparing";
    case EvaluatorPeer::State::kUp:
      return "up";
    case EvaluatorPeer::State::kLost:
      return "lost";
    case EvaluatorPeer::State::kLeft:
      return "left";
  }
  return "";
}

}  // namespace shoal
