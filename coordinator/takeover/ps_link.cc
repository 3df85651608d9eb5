#include "coordinator/takeover/ps_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/text/printable.h"
#include "common/log/logging.h"

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
               .on_closed = [this](const absl::Status& status) { OnClosed(status); },
               .is_quiet =
                   [this] {
                     return hello_seen_ &&
                            (options_.is_quiet == nullptr || options_.is_quiet(options_.index));
                   },
               .on_reopen = [this] { OnReopen(); }}) {
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

// The owner sends pending requests again after the next hello, as after a stream that broke.
void PsLink::OnReopen() {
  LogInfo(absl::StrCat("opening the stream to ps ", options_.index, " at ", options_.address,
                       " anew, with new certificates"));
  hello_seen_ = false;
  since_ = options_.loop->Now();
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
