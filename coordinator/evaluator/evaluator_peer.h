#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "coordinator/steps/admission.h"
#include "proto/evaluator.pb.h"

namespace shoal {

// The coordinator's side of the evaluator: its stream, and whether it is available. There is at
// most one evaluator: Admission rejects a second process while the first has its stream.
//
//   none ── hello ──▶ preparing ── ready ──▶ up ── announces to leave ───▶ left
//                         ▲          └── stream gone ──▶ lost ┘   │
//                         └──────────────── hello ────────────────┘
//
// Loop thread only.
class EvaluatorPeer {
 public:
  enum class State { kNone, kPreparing, kUp, kLost, kLeft };
  struct Options {
    EventLoop* loop = nullptr;  // outlives this
    std::string job_text;
    // Error if no evaluator can take part; the message is one line.
    absl::Status usable;
    // The evaluator can compute and is accepted.
    std::function<void()> on_ready;
    // Returns an error if the evaluator sees a wrong number of examples.
    std::function<absl::Status(const proto::EvaluatorReady&)> check_ready;
    // All other reports of an evaluator that is up.
    std::function<void(const proto::EvaluatorReport&)> on_report;
    // The evaluator, whose hello was accepted, is gone. `in_order`: it announced that it leaves.
    std::function<void(bool in_order)> on_gone;
  };
  explicit EvaluatorPeer(Options options);

  // Takes over a new Evaluate stream; returns the callbacks for it.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream);

  State state() const { return state_; }
  bool up() const { return state_ == State::kUp; }
  bool connected() const { return stream_ != nullptr; }
  // True if the evaluator is up, or was up within kEvaluatorPatience. A restarted one comes back
  // within seconds.
  bool present() const;
  // The number of test examples that it reported when it was ready.
  uint64_t test_examples() const { return test_examples_; }
  // "host, pid 12"; empty before the first hello.
  const std::string& address() const { return address_; }
  // Why it is lost, or has left.
  const std::string& detail() const { return detail_; }
  // Number of processes that took the place of another one.
  uint64_t restarts() const;
  // Number of evaluators that were rejected because they computed another job.
  uint64_t of_another_job() const { return admission_.of_another_job(); }

  // Requires connected().
  void Send(const proto::EvaluatorOrder& order) { stream_->Send(MakeMessage(order)); }
  // Sends `reason` to the evaluator, logs it and ends the stream. `final`: a retry is useless.
  void Reject(const std::string& reason, bool final);
  // Tells the evaluator that the job is over; `failure` is the reason, empty if the job is done.
  // From now on each new hello gets the same answer, and no welcome.
  void EndJob(const std::string& failure);

 private:
  void OnMessage(uint64_t key, const Message& message);
  void OnHello(uint64_t key, const proto::EvaluatorHello& hello);
  void OnReady(const proto::EvaluatorReady& ready);
  void OnClosed(uint64_t key, const absl::Status& status);
  void Reject(const proto::Rejected& rejected);
  void Gone(State state, const std::string& why);

  const Options options_;
  Admission admission_;  // with one seat
  uint64_t key_ = 0;     // of the evaluator's stream
  std::unique_ptr<Stream> stream_;
  State state_ = State::kNone;
  bool was_up_ = false;  // it was up and has not left since
  Time lost_at_{};
  uint64_t test_examples_ = 0;
  std::string address_;
  std::string detail_;
  std::optional<proto::EvaluatorOrder> job_done_;
};

// "preparing", "up", "lost", "left".
const char* StateName(EvaluatorPeer::State state);

// The run waits this long for a lost evaluator.
inline constexpr Time kEvaluatorPatience = std::chrono::seconds(10);

}  // namespace shoal
