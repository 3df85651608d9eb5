#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/backoff.h"
#include "common/rpc/field_limits.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// The Control stream to one ps, opened again whenever it breaks, for ever. Loop thread only.
class PsLink {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // both outlive this
    Network* network = nullptr;
    int index = 0;
    std::string address;
    uint64_t seed = 0;  // of the pauses between tries
    // Of ControlReply: a ps that sends more loses its stream.
    std::vector<FieldLimit> limits;
    // The ps has opened a stream with its hello; from here on Send reaches it.
    std::function<void(int ps, const proto::ServerHello&)> on_hello;
    std::function<void(int ps, const proto::ControlReply&)> on_reply;
    std::function<void(int ps, const absl::Status&)> on_lost;
  };
  explicit PsLink(Options options);

  // Dropped while there is no stream: whatever matters is sent again after a hello.
  void Send(const proto::ControlRequest& request);
  // Sends the last request, which is still on its way when this returns; no more tries.
  void Finish(const proto::ControlRequest& request);
  bool connected() const { return hello_seen_; }
  // Since when it has been connected, or not.
  Time since() const { return since_; }
  // Why it is not connected, or was not at the last try; empty where that is not known.
  std::string last_error() const;
  // No more tries.
  void Close();

 private:
  void Open();
  void OnMessage(const Message& message);
  void OnClosed(const absl::Status& status);

  const Options options_;
  Backoff backoff_;
  std::unique_ptr<Stream> stream_;
  bool hello_seen_ = false;
  bool closed_ = false;
  Time since_{};
  std::string last_error_;
  Timer retry_{options_.loop};
};

}  // namespace shoal
