#include "worker/session/coordinator_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// The link logs the wait for the coordinator this often.
constexpr Time kLinkWatchPeriod = std::chrono::seconds(5);

// A leaving task waits at most this long for the coordinator to close the stream.
constexpr Time kLeaveTimeout = std::chrono::seconds(1);

}  // namespace

CoordinatorLink::CoordinatorLink(Options options)
    : options_(std::move(options)),
      stream_({.loop = options_.loop,
               .network = options_.network,
               .server = options_.coordinator,
               .method = options_.method,
               .seed = options_.seed,
               .on_open = options_.on_open,
               .on_message =
                   [this](const Message& message) {
                     if (!over_) options_.on_message(message);
                   },
               .on_closed = [this](const absl::Status& status) { OnClosed(status); },
               .is_quiet =
                   [this] {
                     return welcomed_ && !over_ &&
                            (options_.is_quiet == nullptr || options_.is_quiet());
                   },
               .on_reopen = [this] { OnReopen(); }}) {}

void CoordinatorLink::Start() {
  disconnected_since_ = options_.loop->Now();
  watch_.Set(kLinkWatchPeriod, [this] { Watch(); });
  LogInfo("looking for the coordinator at " + options_.coordinator);
  stream_.Open();
}

// Promise 8: nothing waits in silence.
void CoordinatorLink::Watch() {
  watch_.Set(kLinkWatchPeriod, [this] { Watch(); });
  if (welcomed_) return;
  if (rejected_) return LogWarning(NoCoordinator());
  const std::string trouble = options_.network->IsLookingUp(options_.coordinator)
                                  ? "looking up the name"
                              : last_error_.empty() ? "no answer"
                                                    : last_error_;
  LogWarning(absl::StrCat("waiting for the coordinator at ", options_.coordinator, " for ",
                          WholeSeconds(DisconnectedTime()), " s: ", trouble));
}

std::string CoordinatorLink::NoCoordinator() const {
  return absl::StrCat(rejected_ ? "rejected by the coordinator at " : "no coordinator at ",
                      options_.coordinator, " for ", WholeSeconds(DisconnectedTime()),
                      " s: ", last_error_);
}

absl::Status CoordinatorLink::Parse(const Message& message,
                                    google::protobuf::MessageLite* order) const {
  if (ParseMessage(message, order)) return absl::OkStatus();
  return InvalidMessageError("the coordinator at " + options_.coordinator, order->GetTypeName());
}

void CoordinatorLink::Welcomed() {
  if (std::exchange(lost_, false)) {
    LogInfo(absl::StrCat("back with the coordinator at ", options_.coordinator, " after ",
                         WholeSeconds(DisconnectedTime()), " s"));
  }
  welcomed_ = true;
  reopening_ = rejected_ = false;
  stream_.MarkAccepted();
}

absl::Status CoordinatorLink::Rejected(const proto::Rejected& rejected) {
  const std::string reason = PrintableLines(rejected.reason(), kMaxReasonBytes);
  const std::string why = "the coordinator says: " + reason;
  if (rejected.other_job()) return absl::UnavailableError(why);
  if (rejected.final()) return absl::FailedPreconditionError(why);
  // Watch() logs a repeated reason.
  if (!rejected_ || last_error_ != reason) LogWarning(why);
  rejected_ = true;
  last_error_ = reason;
  if (std::exchange(welcomed_, false)) disconnected_since_ = options_.loop->Now();
  return absl::OkStatus();
}

void CoordinatorLink::OnClosed(const absl::Status& status) {
  reopening_ = false;
  // A coordinator that rejects this task closes the stream with OK.
  if (!rejected_ || !status.ok()) {
    rejected_ = false;
    last_error_ = Printable(std::string(status.message()), kMaxReasonBytes);
  }
  if (over_) return StopWaiting();
  if (std::exchange(welcomed_, false)) {
    disconnected_since_ = options_.loop->Now();
    lost_ = true;
    LogWarning(absl::StrCat("lost the coordinator at ", options_.coordinator, ": ",
                            absl::StripPrefix(last_error_, options_.coordinator + ": ")));
  }
  options_.on_closed();
}

void CoordinatorLink::OnReopen() {
  if (options_.on_reopen != nullptr) options_.on_reopen();
  LogInfo(absl::StrCat("opening the stream to the coordinator at ", options_.coordinator,
                       " anew, with new certificates"));
  welcomed_ = false;
  reopening_ = true;
  disconnected_since_ = options_.loop->Now();
  last_error_.clear();
}

absl::Status CoordinatorLink::Retry() {
  if (DisconnectedTime() >= options_.timeout) return absl::UnavailableError(NoCoordinator());
  stream_.OpenLater();
  return absl::OkStatus();
}

void CoordinatorLink::Leave(std::function<void()> done) {
  End();
  if (!stream_.open()) return done();
  // The coordinator closes the stream when it has read the last report. This way it knows before
  // the process ends.
  left_ = std::move(done);
  stream_.Finish();
  leave_deadline_.Set(kLeaveTimeout, [this] { StopWaiting(); });
}

void CoordinatorLink::StopWaiting() {
  if (const auto left = std::exchange(left_, nullptr); left != nullptr) left();
}

void CoordinatorLink::End() {
  over_ = true;
  watch_.Cancel();
  // No retry, and no next stream.
  if (!stream_.open() || stream_.reopening()) stream_.Close();
}

void CoordinatorLink::Collect(MetricSamples* out) const {
  out->Add("shoal_worker_connected", welcomed_ ? 1 : 0);
  if (welcomed_) return;
  out->Add("shoal_worker_waiting_seconds", ToSeconds(DisconnectedTime()),
           {"chief", "0", "no connection"});
}

}  // namespace shoal
