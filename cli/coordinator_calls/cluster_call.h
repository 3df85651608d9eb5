#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"

namespace shoal {

// Parses a coordinator's answer; returns false if it has another type. Makes its texts printable,
// because some of them come from other peers (common/base/text/printable.h).
bool ParseReply(const Message& answer, google::protobuf::Message* reply);

// One request to a coordinator and its one answer. Loop thread only; no callback after destruction.
class ClusterCall {
 public:
  using Done = std::function<void(absl::StatusOr<Message>)>;
  struct Options {
    EventLoop* loop = nullptr;  // both outlive this
    Network* network = nullptr;
    std::string address;
    std::string method;
    Time timeout{};
  };
  // Sends the request at once. Calls `done` once, within the timeout, from the loop: with the
  // answer, with the coordinator's rejection in printable form, or with an error that names the
  // address. `done` may destroy this.
  ClusterCall(const Options& options, Message request, Done done);
  ClusterCall(const ClusterCall&) = delete;
  ClusterCall& operator=(const ClusterCall&) = delete;

 private:
  void Finish(absl::StatusOr<Message> result);

  Done done_;
  Timer timer_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace shoal
