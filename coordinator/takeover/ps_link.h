#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/rpc/field_limits.h"
#include "common/rpc/network.h"
#include "common/rpc/reconnecting_stream.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// The Control stream to one ps. Reopens it whenever it breaks, without limit, and when it has an
// old certificate and is quiet (ReconnectingStream). Loop thread only.
class PsLink {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // both outlive this
    Network* network = nullptr;
    int index = 0;
    std::string address;
    uint64_t seed = 0;  // for the random pauses between tries
    // Limits on fields of ControlReply. A ps that exceeds them loses its stream.
    std::vector<FieldLimit> limits;
    // The ps has sent its hello on a new stream. From now on Send reaches it.
    std::function<void(int ps, const proto::ServerHello&)> on_hello;
    std::function<void(int ps, const proto::ControlReply&)> on_reply;
    std::function<void(int ps, const absl::Status&)> on_lost;
    // Returns whether the owner waits for nothing but probes on this stream. Null: always.
    std::function<bool(int ps)> is_quiet;
  };
  explicit PsLink(Options options);

  // Sends a request. Drops it while there is no stream: the owner sends pending requests again
  // after a hello.
  void Send(const proto::ControlRequest& request);
  // Sends the last request and does not reconnect any more. Returns before it has arrived.
  void Finish(const proto::ControlRequest& request);
  bool connected() const { return hello_seen_; }
  // When connected() last changed.
  Time since() const { return since_; }
  // Why there is no connection: the lookup of the name is in progress, the stream broke, or the
  // last try failed. Empty if unknown.
  std::string last_error() const;
  // Reopens a stream that has an old certificate, if Options::is_quiet allows it.
  void ReopenIfQuiet() { stream_.ReopenIfQuiet(); }
  // Closes the stream and does not reconnect any more.
  void Close();

 private:
  void OnMessage(const Message& message);
  void OnClosed(const absl::Status& status);
  void OnReopen();
  // Ends the stream of a ps that breaks the protocol.
  void Break(const std::string& why);

  const Options options_;
  bool hello_seen_ = false;
  Time since_{};
  std::string last_error_;
  ReconnectingStream stream_;
};

}  // namespace shoal
