#include "coordinator/evaluator/evaluator_peer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "coordinator/steps/rejection.h"

namespace shoal {
namespace {

// A rejected evaluator retries every second. The log mentions it this often.
constexpr Time kEvaluatorClaimsSaidEvery = std::chrono::minutes(1);

void Refuse(Stream* stream, const proto::Rejected& rejected) {
  proto::EvaluatorOrder order;
  *order.mutable_rejected() = rejected;
  stream->Send(MakeMessage(order));
  stream->Finish(absl::OkStatus());
}

}  // namespace

EvaluatorPeer::EvaluatorPeer(Options options)
    : options_(std::move(options)), job_fingerprint_(JobFingerprint(options_.job_text)) {}

StreamCallbacks EvaluatorPeer::Accept(std::unique_ptr<Stream> stream) {
  const uint64_t key = next_key_++;
  others_[key] = std::move(stream);
  return {.on_message = [this, key](Message message) { OnMessage(key, message); },
          .on_closed = [this, key](absl::Status status) { OnClosed(key, status); }};
}

bool EvaluatorPeer::present() const {
  return up() || (was_up_ && options_.loop->Now() - lost_at_ < kEvaluatorPatience);
}

void EvaluatorPeer::Reject(const std::string& reason, bool final) {
  Reject(Rejection(reason, final));
}

void EvaluatorPeer::Reject(const proto::Rejected& rejected) {
  if (stream_ == nullptr) return;
  LogWarning(absl::StrCat("rejected the evaluator at ", stream_->peer(), ": ", rejected.reason()));
  Refuse(stream_.get(), rejected);
  others_[key_] = std::move(stream_);
  if (rejected.final()) was_up_ = false;
  Gone(State::kLost, rejected.reason());
}

void EvaluatorPeer::TurnAway(uint64_t key, const std::string& reason, bool final) {
  Refuse(others_.at(key).get(), Rejection(reason, final));
}

void EvaluatorPeer::OnMessage(uint64_t key, const Message& message) {
  const bool known = key == key_ && stream_ != nullptr;
  if (!known && !others_.contains(key)) return;
  proto::EvaluatorReport report;
  const bool sound = ParseMessage(message, &report);
  if (!known) {
    if (!sound || !report.has_hello()) {
      LogWarning(absl::StrCat("rejected an evaluator at ", others_.at(key)->peer(),
                              ": its first message is no hello"));
      return TurnAway(key, "the first message of an evaluator must be its hello", true);
    }
    return OnHello(key, report.hello());
  }
  if (!sound) {
    return Reject("what was sent is not an EvaluatorReport of proto/evaluator.proto",
                  /*final=*/true);
  }
  switch (report.kind_case()) {
    case proto::EvaluatorReport::kHello:
      return Reject("said hello twice on one stream", /*final=*/true);
    case proto::EvaluatorReport::kReady:
      return OnReady(report.ready());
    case proto::EvaluatorReport::kLeaving: {
      const std::string reason = PrintableLines(report.leaving().reason(), kMaxReasonBytes);
      LogWarning("the evaluator leaves: " + reason);
      others_[key_] = std::move(stream_);
      was_up_ = false;
      return Gone(State::kLeft, reason);
    }
    default:
      if (up()) options_.on_report(report);
  }
}

void EvaluatorPeer::OnHello(uint64_t key, const proto::EvaluatorHello& hello) {
  const std::string who = absl::StrCat("the evaluator at ", others_.at(key)->peer());
  absl::Status fits = CheckVersion(hello.version(), who);
  fits.Update(options_.usable);
  if (!fits.ok()) {
    const std::string reason(fits.message());
    LogWarning(absl::StrCat("rejected ", who, ": ", reason));
    return TurnAway(key, reason, /*final=*/true);
  }
  if (stream_ != nullptr && hello.incarnation() != incarnation_) {
    const std::string reason = absl::StrCat(
        "there is an evaluator already, and it is alive: ", address_, ", at ", stream_->peer(),
        ". A cluster has one; if this one is to replace it, end that one");
    if (const Time now = options_.loop->Now(); now >= claims_said_until_) {
      claims_said_until_ = now + kEvaluatorClaimsSaidEvery;
      LogWarning(absl::StrCat("rejected ", who, ": ", reason));
    }
    return TurnAway(key, reason, /*final=*/false);
  }
  if (stream_ != nullptr) {
    // The same evaluator has a new stream: its old one broke, but this was not noticed yet.
    stream_.reset();
    Gone(State::kLost, "it has opened a new stream");
  }
  if (incarnation_.has_value() && incarnation_ != hello.incarnation()) ++restarts_;
  incarnation_ = hello.incarnation();
  key_ = key;
  stream_ = std::move(others_.at(key));
  others_.erase(key);
  state_ = State::kPreparing;
  detail_.clear();
  address_ = absl::StrCat(Printable(hello.host(), kMaxNameBytes), ", pid ", hello.pid());
  LogInfo(absl::StrCat("the evaluator has joined (", address_, ", ",
                       Printable(hello.device(), kMaxNameBytes), ", ", hello.threads(),
                       hello.threads() == 1 ? " thread)" : " threads)"));
  proto::EvaluatorOrder order;
  order.mutable_welcome()->set_job(options_.job_text);
  Send(order);
}

void EvaluatorPeer::OnReady(const proto::EvaluatorReady& ready) {
  if (up()) return;
  if (ready.job_fingerprint() != job_fingerprint_) {
    ++of_another_job_;
    return Reject(RejectionOfOtherJob(ready.job_fingerprint(), job_fingerprint_));
  }
  if (const absl::Status sound = options_.check_ready(ready); !sound.ok())
    return Reject(std::string(sound.message()), /*final=*/true);
  test_examples_ = ready.test_examples();
  state_ = State::kUp;
  was_up_ = true;
  LogInfo("the evaluator is ready");
  options_.on_ready();
}

void EvaluatorPeer::OnClosed(uint64_t key, const absl::Status& status) {
  if (others_.erase(key) > 0 || key != key_ || stream_ == nullptr) return;
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
