#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/network.h"
#include "ps/services/control_service.h"
#include "ps/services/exchange_service.h"
#include "ps/services/ps_state.h"
#include "ps/store/variable_store.h"

namespace shoal {

// The ps as a state machine over streams: rules 1 to 7 of the protocol. Accepts Exchange and
// Control streams, which two services over one PsState serve. All calls on the loop's thread.
class ParameterServer {
 public:
  struct Options {
    int index = 0;
    uint64_t incarnation = 0;   // random, not 0
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = RealFileSystem();
    ControlService::Options control;
  };
  explicit ParameterServer(Options options);

  // For Network::Listen.
  absl::StatusOr<StreamCallbacks> Accept(const std::string& method, std::unique_ptr<Stream> stream);

  // Asks the coordinator for a checkpoint and calls control.on_stopped when it is written or has
  // failed. Calls it after 2 s without a coordinator: its streams may just have broken. Calls it
  // after `grace` in any case. An empty ps leaves at once.
  void Leave(Time grace);
  // Adds its stats for Prometheus.
  void Collect(MetricSamples* out) const;
  // Returns OK while it can serve, also before a coordinator has come. Otherwise the message says
  // why not, in a line. kUnavailable: it is loading variables. kFailedPrecondition: it is leaving,
  // or stopped.
  absl::Status CheckReady() const;

  uint64_t promised_term() const { return state_.promised_term; }
  // 0 when empty.
  uint64_t timeline() const { return state_.timeline_term(); }
  // Null when empty.
  const VariableStore* variables() const {
    return state_.timeline ? state_.timeline->variables.store.get() : nullptr;
  }

 private:
  PsState state_;
  ControlService control_;
  ExchangeService exchange_;
};

}  // namespace shoal
