#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/network.h"
#include "common/rpc/scope.h"
#include "coordinator/steps/admission.h"
#include "coordinator/steps/step_dispatcher.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"

namespace shoal {

// One connected worker whose hello was accepted. While it reopens its stream, it is not ready, and
// has no stream for a moment.
struct Worker {
  StepDispatcher::WorkerKey key = 0;  // of this connection; never used again
  int index = 0;
  proto::WorkerHello hello;
  std::unique_ptr<Stream> stream;  // null while it has none
  std::optional<Timer> reopening;  // set while it reopens its stream; then it counts as gone
  bool ready = false;              // it has job and data and can compute
  bool lost_timeline = false;      // it dropped the open timeline and waits for a new announcement
  uint64_t steps_done = 0;
  bool in_line = false;     // waits for steps
  double step_seconds = 0;  // smoothed time from one step to the next; 0 before two steps
  Time last_report{};       // of steps or batches, or its hello
  proto::Waiting waiting;   // its last message about long work,
  Time waiting_at{};        // and when that arrived

  // True while it is alive and computes a long step: it then reports this every 5 s.
  bool Computing(Time now) const {
    return waiting.computing() && now - waiting_at < std::chrono::seconds(15);
  }
  // Sends an order. It is lost if the worker has no stream, as on a stream that breaks.
  void Send(const proto::WorkerOrder& order) {
    if (stream != nullptr) stream->Send(MakeMessage(order));
  }
};

// The connected workers and their indices. A listed worker brings its index. A worker that is not
// listed gets the next free one. Admission decides between two processes that claim one index.
//
// A worker that says Reopening stays a member without its stream, for at most 5 s. Its hello on the
// next stream makes it a Worker with another key, to which on_reopened moves what the former one
// holds. Loop thread only.
class Membership {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // outlives this
    std::set<int> listed;       // worker indices of the cluster spec
    std::string job_text;
    std::vector<std::string> ps_addresses;
    std::function<void(Worker&, const proto::WorkerReady&)> on_ready;
    // All other reports of a worker whose hello was accepted.
    std::function<void(Worker&, const proto::WorkerReport&)> on_report;
    // The worker's stream is gone. Called once for each worker whose hello was accepted, before the
    // Worker is destroyed. Not called for one that on_reopened replaces.
    std::function<void(Worker&, const std::string& why)> on_gone;
    // The worker has reopened its stream. `former` is not among workers() any more, and is
    // destroyed afterwards. `now` has sent its hello and is not ready yet.
    std::function<void(const Worker& former, Worker& now)> on_reopened;
  };
  explicit Membership(Options options);
  ~Membership();

  // Takes over a new Work stream; returns the callbacks for it.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream);

  // Sends `reason` to the worker, logs it and ends the stream. `final`: a retry is useless.
  // Destroys `worker`.
  void Reject(Worker& worker, const std::string& reason, bool final);
  // Sends `order` to all workers whose hello was accepted.
  void Broadcast(const proto::WorkerOrder& order);
  // Tells all workers that the job is over; `failure` is the reason, empty if the job is done.
  // From now on each new hello gets the same answer, and no welcome.
  void EndJob(const std::string& failure);
  // After EndJob: true if every listed worker was notified, or left before.
  bool AllNotified() const;

  // Connected workers that are ready.
  std::vector<Worker*> Ready();
  bool AnyReady() const;
  // True if every worker that ever joined has announced that it leaves.
  bool AllLeft() const;
  // Connected workers whose hello was accepted. Each has its index.
  const std::map<StepDispatcher::WorkerKey, std::unique_ptr<Worker>>& workers() const {
    return workers_;
  }

  // Facts about every worker whose hello was accepted, by index. Keeps at most 1000 workers that
  // are gone and not listed, and forgets those first that went first.
  struct Record {
    enum class State { kPreparing, kUp, kDraining, kLost, kLeft };
    State state = State::kPreparing;
    StepDispatcher::WorkerKey key = 0;  // of its latest connection
    std::string address;                // "host, pid 12"
    std::string detail;
    uint64_t steps_done = 0;
    uint64_t restarts = 0;  // how often another process took its place
    uint64_t expiries = 0;  // how often its leases expired while it was alive and at work
    uint64_t went = 0;      // rises with each worker that goes
  };
  const std::map<int, Record>& records() const { return records_; }
  // Number of workers that were rejected because they computed another job.
  uint64_t of_another_job() const { return admission_.of_another_job(); }
  Record& record(const Worker& worker) { return records_[worker.index]; }

 private:
  void ForgetFirstGone();
  void OnMessage(StepDispatcher::WorkerKey key, const Message& message);
  void OnHello(StepDispatcher::WorkerKey key, const proto::WorkerHello& hello);
  void OnClosed(StepDispatcher::WorkerKey key, const absl::Status& status);
  void OnReopening(Worker& worker);
  void Reject(Worker& worker, const proto::Rejected& rejected);
  // Returns the connected worker with this index, or nullptr.
  Worker* WorkerAt(int index);
  void Remove(StepDispatcher::WorkerKey key, const std::string& why);
  // Returns the index for a hello. Error if the worker asks for an index that is not listed.
  absl::StatusOr<int> IndexFor(const proto::WorkerHello& hello) const;

  const Options options_;
  Admission admission_;  // a seat is an index
  std::map<StepDispatcher::WorkerKey, std::unique_ptr<Worker>> workers_;
  std::map<int, Record> records_;
  std::optional<proto::WorkerOrder> job_done_;
  std::set<int> notified_;  // indices of workers that were sent job_done_
  uint64_t went_ = 0;       // workers that have gone, those that came back included
};

// "preparing", "up", "draining", "lost", "left".
const char* StateName(Membership::Record::State state);

}  // namespace shoal
