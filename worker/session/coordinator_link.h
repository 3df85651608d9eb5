#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/metrics/metric_samples.h"
#include "common/rpc/network.h"
#include "common/rpc/reconnecting_stream.h"
#include "common/rpc/scope.h"
#include "proto/worker.pb.h"

namespace shoal {

// The stream of a worker or evaluator to the coordinator, and what the task knows of it.
//
//                    ┌─── Rejected(), for now ────┐
//                    ▼                            │
//   Start() ──▶ disconnected ── Welcomed() ──▶ welcomed
//                    ▲                            │
//                    └──── lost, or reopened ─────┤
//                                                 └── Leave() or End(), from any state ──▶ over
//
// A stream with an old certificate is reopened when the owner allows it (ReconnectingStream).
// It logs each loss, and each long wait for the coordinator. The owner sends the hello, reads the
// messages and decides when it is over. Loop thread only.
class CoordinatorLink {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // both outlive this
    Network* network = nullptr;
    std::string coordinator;        // address, HOST:PORT
    std::string method;             // of the stream
    uint64_t seed = 0;              // for the random pauses between tries
    Time timeout{};                 // Retry() fails after this long without a coordinator
    std::function<void()> on_open;  // a stream is open: send the hello
    // Not called any more once it is over.
    std::function<void(const Message&)> on_message;
    // The stream broke before the end. The owner calls Retry() or ends.
    std::function<void()> on_closed;
    // Returns whether the stream may be reopened now. Asked only while welcomed. Null: at any time.
    std::function<bool()> is_quiet;
    // The stream is about to be reopened. The owner sends its last reports. May be null.
    std::function<void()> on_reopen;
  };
  explicit CoordinatorLink(Options options);

  void Start();
  // Sends a report. No effect while there is no stream.
  void Send(const google::protobuf::MessageLite& report) { stream_.Send(MakeMessage(report)); }
  // Parses a message of the coordinator. kInvalidArgument: it is not of this type.
  absl::Status Parse(const Message& message, google::protobuf::MessageLite* order) const;

  // The coordinator has accepted the hello.
  void Welcomed();
  // The coordinator rejects this task. OK: for now, and another stream may be accepted.
  // kUnavailable: it has another job. kFailedPrecondition: it will never accept this process.
  absl::Status Rejected(const proto::Rejected& rejected);
  // Opens another stream after a pause. kUnavailable: there has been no coordinator for `timeout`.
  absl::Status Retry();

  // Ends the link, and finishes the stream so that the last report arrives. Calls `done` once the
  // coordinator has closed the stream, but within a second. Calls it at once without a stream.
  void Leave(std::function<void()> done);
  // Calls `done` of a Leave() that still waits.
  void StopWaiting();
  // Ends the link. Queued reports are still sent while this object lives.
  void End();
  // Whether Leave() or End() was called.
  bool over() const { return over_; }

  bool welcomed() const { return welcomed_; }
  // Whether the stream is being reopened: the coordinator waits for the next hello.
  bool reopening() const { return reopening_; }
  // Adds whether there is a coordinator, and for how long there has been none.
  void Collect(MetricSamples* out) const;

 private:
  void OnClosed(const absl::Status& status);
  void OnReopen();
  // Periodic: logs the wait for the coordinator.
  void Watch();
  // Returns a log line: for how long there is no coordinator, and the last error.
  std::string NoCoordinator() const;
  // Returns the time without a welcome.
  Time DisconnectedTime() const { return options_.loop->Now() - disconnected_since_; }

  const Options options_;
  bool welcomed_ = false;
  bool reopening_ = false;     // from OnReopen() until the next stream is welcomed, or one is lost
  Time disconnected_since_{};  // valid while not welcomed
  bool lost_ = false;          // the log has the loss of the coordinator, but not its return
  std::string last_error_;     // of the stream
  bool rejected_ = false;      // the coordinator rejected this for now; last_error_ is its reason
  bool over_ = false;
  std::function<void()> left_;  // `done` of Leave()
  ReconnectingStream stream_;
  Timer watch_{options_.loop};
  Timer leave_deadline_{options_.loop};
};

}  // namespace shoal
