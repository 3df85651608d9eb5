#include "coordinator/takeover/ps_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/text/printable.h"

namespace shoal {

PsLink::PsLink(Options options)
    : options_(std::move(options)),
      since_(options_.loop->Now()),
      stream_({.loop = options_.loop,
               .network = options_.network,
               .server = {options_.address, options_.index},
               .method = kControlMethod,
               .seed = options_.seed,
               .on_message = [this](const Message& message) { OnMessage(message); },
               .on_closed = [this](const absl::Status& status) { OnClosed(status); }}) {
  stream_.Open();
}

void PsLink::Send(const proto::ControlRequest& request) {
  if (hello_seen_) stream_.Send(MakeMessage(request));
}

void PsLink::Finish(const proto::ControlRequest& request) {
  Send(request);
  if (hello_seen_) stream_.Finish();
  Close();
}

std::string PsLink::last_error() const {
  if (!hello_seen_ && options_.network->IsLookingUp(options_.address)) return "looking up the name";
  return last_error_;
}

void PsLink::Close() {
  hello_seen_ = false;
  stream_.Close();
}

void PsLink::OnMessage(const Message& message) {
  proto::ControlReply reply;
  // Callers show which ps.
  const absl::Status parsed = ParseWithin(
      options_.limits, message, [] { return std::string("it"); }, &reply);
  if (!parsed.ok()) return Break(std::string(parsed.message()));
  if (reply.kind_case() != proto::ControlReply::kHello) {
    if (hello_seen_) options_.on_reply(options_.index, reply);
    return;
  }
  if (hello_seen_) return Break(options_.address + " sent its hello twice on one stream");
  hello_seen_ = true;
  since_ = options_.loop->Now();
  last_error_.clear();
  stream_.MarkAccepted();
  options_.on_hello(options_.index, reply.hello());
}

void PsLink::Break(const std::string& why) {
  stream_.Close();
  OnClosed(absl::InvalidArgumentError(why));
}

void PsLink::OnClosed(const absl::Status& status) {
  // Callers show the address themselves.
  const std::string why(absl::StripPrefix(status.message(), options_.address + ": "));
  last_error_ = Printable(why, kMaxReasonBytes);
  stream_.OpenLater();
  if (!std::exchange(hello_seen_, false)) return;
  since_ = options_.loop->Now();
  options_.on_lost(options_.index, status);
}

}  // namespace shoal
