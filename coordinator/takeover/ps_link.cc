#include "coordinator/takeover/ps_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

// A stream that lasted this long resets the pauses.
constexpr Time kLinkSettled = std::chrono::seconds(1);

}  // namespace

PsLink::PsLink(Options options)
    : options_(std::move(options)),
      backoff_(std::chrono::milliseconds(50), std::chrono::seconds(1), options_.seed),
      since_(options_.loop->Now()) {
  Open();
}

void PsLink::Send(const proto::ControlRequest& request) {
  if (hello_seen_) stream_->Send(MakeMessage(request));
}

void PsLink::Finish(const proto::ControlRequest& request) {
  Send(request);
  if (hello_seen_) stream_->Finish(absl::OkStatus());
  Close();
}

std::string PsLink::last_error() const {
  if (!hello_seen_ && options_.network->LooksUp(options_.address)) return "looking up the name";
  return last_error_;
}

void PsLink::Close() {
  closed_ = true;
  hello_seen_ = false;
  stream_.reset();
  retry_.Cancel();
}

void PsLink::Open() {
  stream_ =
      options_.network->Open(options_.address, kControlMethod,
                             {.on_message = [this](Message message) { OnMessage(message); },
                              .on_closed = [this](absl::Status status) { OnClosed(status); }});
}

void PsLink::OnMessage(const Message& message) {
  proto::ControlReply reply;
  if (const absl::Status parsed = ParseWithin(options_.limits, message, &reply); !parsed.ok()) {
    return OnClosed(absl::InvalidArgumentError(
        absl::StrCat(options_.address, " does not speak as a ps of this version does: it ",
                     std::string(parsed.message()))));
  }
  if (reply.kind_case() != proto::ControlReply::kHello) {
    if (hello_seen_) options_.on_reply(options_.index, reply);
    return;
  }
  if (hello_seen_) {
    return OnClosed(absl::InvalidArgumentError(options_.address + " said hello twice"));
  }
  hello_seen_ = true;
  since_ = options_.loop->Now();
  last_error_.clear();
  options_.on_hello(options_.index, reply.hello());
}

void PsLink::OnClosed(const absl::Status& status) {
  if (closed_) return;
  const bool was_connected = std::exchange(hello_seen_, false);
  // A stream that breaks soon after each hello is not retried at once each time.
  if (was_connected && options_.loop->Now() - since_ >= kLinkSettled) backoff_.Reset();
  if (was_connected) since_ = options_.loop->Now();
  // Callers show the address themselves.
  const std::string why(absl::StripPrefix(status.message(), options_.address + ": "));
  last_error_ = Printable(why, kMaxReasonBytes);
  stream_.reset();
  retry_.Set(backoff_.Next(), [this] { Open(); });
  if (was_connected) options_.on_lost(options_.index, status);
}

}  // namespace shoal
