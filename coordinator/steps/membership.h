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
#include "coordinator/steps/step_dispatcher.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"

namespace shoal {

// One worker that is connected.
struct Worker {
  StepDispatcher::WorkerKey key = 0;  // of this connection; never used again
  int index = -1;                     // -1 until its hello is accepted
  proto::WorkerHello hello;
  std::unique_ptr<Stream> stream;
  bool ready = false;          // it has job and data and can compute
  bool lost_timeline = false;  // it has dropped the open timeline and waits to be told of it again
  uint64_t steps_done = 0;
  bool in_line = false;      // for steps
  double step_seconds = 0;   // smoothed time from one step to the next; 0 before two
  Time last_report{};        // of steps or batches, or its hello
  Time claims_said_until{};  // refusals of others that claim its index are not logged until then
  proto::Waiting waiting;    // what it said last that it is at, if that takes long,
  Time waiting_at{};         // and when

  // It says every 5 s what it is at: it is alive and at a step that takes long.
  bool Computing(Time now) const {
    return waiting.computing() && now - waiting_at < std::chrono::seconds(15);
  }
  void Send(const proto::WorkerOrder& order) { stream->Send(MakeMessage(order)); }
};

// Who takes part: the streams that workers have opened, and the indices they go by. A listed worker
// comes with its index; one that is not listed is given the next free one. Of two processes with
// one index the first stays while its stream is open, however little it says (Keepalive ends the
// stream of one that is gone or stands still): another one that claims it, by mistake or not, puts
// out nobody who works, and may try again. Loop thread only.
class Membership {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // outlives this
    std::set<int> listed;       // worker indices of the cluster spec
    std::string job_text;
    std::vector<std::string> ps_addresses;
    std::function<void(Worker&, const proto::WorkerReady&)> on_ready;
    // Everything else that a worker with a valid hello says.
    std::function<void(Worker&, const proto::WorkerReport&)> on_report;
    // Its stream is gone; called once for each that had said hello, before the Worker is destroyed.
    std::function<void(Worker&, const std::string& why)> on_gone;
  };
  explicit Membership(Options options);
  ~Membership();

  // A new Work stream.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream);

  // Tells a worker why it cannot take part and ends its stream.
  void Reject(Worker& worker, const std::string& reason, bool final);
  void Broadcast(const proto::WorkerOrder& order);
  // The job is over, done or for `failure`: tells all workers, and welcomes nobody from now on, but
  // tells each that says hello the same.
  void EndJob(const std::string& failure);
  // After EndJob: every listed worker was told, or has left before.
  bool AllTold() const;

  // Connected workers that are ready.
  std::vector<Worker*> Ready();
  bool AnyReady() const;
  // Everybody who ever came has said that it leaves.
  bool AllLeft() const;
  // Connected workers whose hello was accepted: each has its index.
  const std::map<StepDispatcher::WorkerKey, std::unique_ptr<Worker>>& workers() const {
    return workers_;
  }

  // What is known of every worker that said hello, by index; of those that are not listed, the
  // oldest that are gone are forgotten.
  struct Record {
    enum class State { kPreparing, kUp, kDraining, kLost, kLeft };
    State state = State::kPreparing;
    StepDispatcher::WorkerKey key = 0;  // of its latest connection
    std::string address;                // "host, pid 12"
    std::string detail;
    uint64_t steps_done = 0;
    uint64_t restarts = 0;  // another process took its place
    uint64_t expiries = 0;  // its leases ended though it was alive and at work
  };
  const std::map<int, Record>& records() const { return records_; }
  // Workers that were rejected as they computed another job.
  uint64_t of_another_job() const { return of_another_job_; }
  Record& record(const Worker& worker) { return records_[worker.index]; }

 private:
  void ForgetOldest();
  void OnMessage(StepDispatcher::WorkerKey key, const Message& message);
  void OnHello(Worker& worker, const proto::WorkerHello& hello);
  void OnClosed(StepDispatcher::WorkerKey key, const absl::Status& status);
  // It computes another job: it has outlived a coordinator.
  void RejectOfAnotherJob(Worker& worker, uint32_t fingerprint);
  // Rejects without a word in the log.
  void TurnAway(Worker& worker, const proto::Rejected& rejected);
  // `holder` has the index that `worker` asks for.
  void RefuseClaim(Worker& worker, Worker& holder);
  void Remove(StepDispatcher::WorkerKey key, const std::string& why);
  // The index for a hello; an error when it cannot have the one it asks for.
  absl::StatusOr<int> IndexFor(const proto::WorkerHello& hello) const;

  const Options options_;
  const uint32_t job_fingerprint_;  // of options_.job_text
  StepDispatcher::WorkerKey next_key_ = 1;
  std::map<StepDispatcher::WorkerKey, std::unique_ptr<Worker>> workers_;
  // Streams without an accepted hello: no part of the run knows of them.
  std::map<StepDispatcher::WorkerKey, std::unique_ptr<Worker>> joining_;
  // Streams that have been refused: they live until they have closed, so that the reason arrives.
  std::map<StepDispatcher::WorkerKey, std::unique_ptr<Stream>> rejected_;
  std::map<int, Record> records_;
  std::map<int, uint64_t> incarnations_;  // by index: who had it last
  std::optional<proto::WorkerOrder> job_done_;
  std::set<int> told_;  // indices of workers that were sent job_done_
  uint64_t of_another_job_ = 0;
};

// "preparing", "up", "draining", "lost", "left".
const char* StateName(Membership::Record::State state);

}  // namespace shoal
