#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/rpc/backoff.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"

namespace shoal {

// A client's stream to one address. Its owner opens it again after it breaks, with growing pauses.
//
//            ┌────────────── OpenLater(), after a pause ──────────────┐
//            ▼                                                        │
//   Open() ──▶ open ── MarkAccepted() ──▶ accepted ── broken ──▶ on_closed
//            ▲  └────────────────── broken ───────────────────────▲
//            │                                                    │ broken
//            └── ended in order ── reopening ─────────────────────┘
//                                     ▲
//                        open, outdated and quiet: on_reopen, Finish
//
// A stream keeps the certificates with which it began, and the server ends it when they are too
// old. So the network calls a stream outdated when another one would use newer certificates. Once
// the owner says that the stream is quiet, this class ends it and opens the next one at once. Then
// nothing is lost or done twice. It asks is_quiet each second, and in ReopenIfQuiet(). Without
// certificates no stream is outdated.
//
// The pauses start over after a stream that lasted for a second from MarkAccepted() on. A peer that
// accepts and breaks again and again therefore does not get each try at once. The owner may destroy
// this object in a callback, and no callback follows. Loop thread only.
class ReconnectingStream {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // both outlive this
    Network* network = nullptr;
    ServerAddress server = std::string();
    std::string method;
    uint64_t seed = 0;  // for the random pauses between tries
    // Called when a stream is opened, for the hello. Null if the peer speaks first.
    std::function<void()> on_open;
    std::function<void(Message)> on_message;
    // Called when the stream is gone: why it broke, or the status with which the peer ended it.
    // Without OpenLater() no other stream follows. Not called for a stream that is reopened.
    std::function<void(const absl::Status&)> on_closed;
    // Returns whether the stream may be ended now and opened again, because nothing is under way on
    // it. Asked only if the stream is outdated. Null: an outdated stream stays open.
    std::function<bool()> is_quiet;
    // Called before an outdated stream is ended, for the last messages on it. on_message may
    // follow, and then on_open for the next stream, or on_closed. Must not destroy this object. May
    // be null.
    std::function<void()> on_reopen;
  };
  explicit ReconnectingStream(Options options);

  // Opens the first stream. Requires that none is open.
  void Open();
  // Opens the next stream after a pause. Requires that none is open.
  void OpenLater();
  // Reports that the peer has accepted this stream. Only the first call for a stream counts.
  void MarkAccepted();
  // Reopens the stream if it is outdated and quiet. An owner whose stream is seldom quiet calls
  // this when it is.
  void ReopenIfQuiet() {
    if (outdated_ && !reopening_) Reopen();
  }

  // These three have no effect while no stream is open.
  void Send(Message message) {
    if (stream_ != nullptr) stream_->Send(std::move(message));
  }
  void SendFrom(MessageSource source) {
    if (stream_ != nullptr) stream_->SendFrom(std::move(source));
  }
  // Sends no more on this stream. on_closed follows.
  void Finish() {
    if (stream_ != nullptr) stream_->Finish(absl::OkStatus());
  }
  // Ends the stream, or the pause before the next one. No callback follows. After Finish() the
  // queued messages are still sent.
  void Close();
  bool open() const { return stream_ != nullptr; }
  // Whether an outdated stream is ending, so that it takes no messages.
  bool reopening() const { return reopening_; }

 private:
  void Reopen();
  void OnClosed(const absl::Status& status);
  // Resets the pauses if the last stream was accepted and lasted.
  void Settle();

  const Options options_;
  Backoff backoff_;
  std::optional<Time> accepted_at_;  // of the current stream, or of the last one
  std::unique_ptr<Stream> stream_;
  bool outdated_ = false;   // of stream_
  bool reopening_ = false;  // stream_ is ended for the next one
  Timer retry_{options_.loop};
};

}  // namespace shoal
