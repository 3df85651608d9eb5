#include "common/rpc/reconnecting_stream.h"

#include <utility>

namespace shoal {
namespace {

constexpr Time kFirstPause = std::chrono::milliseconds(50);
constexpr Time kMaxPause = std::chrono::seconds(1);

// An accepted stream that lasts this long resets the pauses.
constexpr Time kSettled = std::chrono::seconds(1);

}  // namespace

ReconnectingStream::ReconnectingStream(Options options)
    : options_(std::move(options)), backoff_(kFirstPause, kMaxPause, options_.seed) {}

void ReconnectingStream::Open() {
  stream_ =
      options_.network->Open(options_.server, options_.method,
                             {.on_message = options_.on_message,
                              .on_outdated =
                                  [this] {
                                    outdated_ = true;
                                    ReopenIfQuiet();
                                  },
                              .on_closed = [this](absl::Status status) { OnClosed(status); }});
  if (options_.on_open != nullptr) options_.on_open();
}

void ReconnectingStream::OpenLater() {
  Settle();
  retry_.Set(backoff_.Next(), [this] { Open(); });
}

void ReconnectingStream::Settle() {
  const auto accepted_at = std::exchange(accepted_at_, std::nullopt);
  if (accepted_at.has_value() && options_.loop->Now() - *accepted_at >= kSettled) backoff_.Reset();
}

void ReconnectingStream::MarkAccepted() {
  if (!accepted_at_.has_value()) accepted_at_ = options_.loop->Now();
}

void ReconnectingStream::Reopen() {
  if (options_.is_quiet == nullptr || !options_.is_quiet()) return;
  reopening_ = true;
  if (options_.on_reopen != nullptr) options_.on_reopen();
  Finish();
}

void ReconnectingStream::Close() {
  stream_.reset();
  outdated_ = reopening_ = false;
  retry_.Cancel();
}

void ReconnectingStream::OnClosed(const absl::Status& status) {
  stream_.reset();
  outdated_ = false;
  if (std::exchange(reopening_, false) && status.ok()) {
    Settle();
    return Open();
  }
  options_.on_closed(status);
}

}  // namespace shoal
