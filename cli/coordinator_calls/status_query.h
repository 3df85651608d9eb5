#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/coordinator_calls/cluster_call.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "proto/cluster.pb.h"

namespace shoal {

// One status request to a coordinator. Loop thread only; no callback after destruction.
class StatusQuery {
 public:
  using Done = std::function<void(absl::StatusOr<proto::StatusReply>)>;

  // Sends the request at once. Calls `done` once, within `timeout`, from the loop: with the reply,
  // or with an error that names the address. `done` may destroy this. `loop` and `network` must
  // outlive this.
  StatusQuery(EventLoop* loop, Network* network, const std::string& address, Time timeout,
              Done done);

 private:
  ClusterCall call_;
};

// Requests a coordinator's status repeatedly, `interval` after each answer. Loop thread only.
class StatusPoller {
 public:
  // Calls `on_result` with each answer or error. `loop` and `network` must outlive this.
  StatusPoller(EventLoop* loop, Network* network, std::string address, Time interval,
               StatusQuery::Done on_result);
  StatusPoller(const StatusPoller&) = delete;
  StatusPoller& operator=(const StatusPoller&) = delete;

 private:
  static constexpr Time kTimeout = std::chrono::seconds(5);
  void Ask();

  EventLoop* const loop_;
  Network* const network_;
  const std::string address_;
  const Time interval_;
  const StatusQuery::Done on_result_;
  Timer timer_{loop_};
  std::unique_ptr<StatusQuery> query_;
};

}  // namespace shoal
