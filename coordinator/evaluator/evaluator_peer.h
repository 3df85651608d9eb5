#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "proto/evaluator.pb.h"

namespace shoal {

// The coordinator's end of the evaluator: the stream that it has opened, and whether it is to be
// counted on. There is one at most: a second process is not let in while the first has its stream.
//
//   none ── hello ──▶ preparing ── ready ──▶ up ── says that it leaves ──▶ left
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
    // Not OK: why no evaluator can take part, in a line.
    absl::Status usable;
    // It has said that it can compute, and is let in.
    std::function<void()> on_ready;
    // Not OK: what is wrong with the number of examples that it sees.
    std::function<absl::Status(const proto::EvaluatorReady&)> check_ready;
    // What an evaluator that is up says else.
    std::function<void(const proto::EvaluatorReport&)> on_report;
    // It had said hello; `in_order`: it has said that it leaves.
    std::function<void(bool in_order)> on_gone;
  };
  explicit EvaluatorPeer(Options options);

  // A new Evaluate stream.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream);

  State state() const { return state_; }
  bool up() const { return state_ == State::kUp; }
  bool connected() const { return stream_ != nullptr; }
  // It is up, or was a moment ago: one that is started again comes back within seconds.
  bool present() const;
  // As it said when it was ready.
  uint64_t test_examples() const { return test_examples_; }
  // "host, pid 12"; empty before the first hello.
  const std::string& address() const { return address_; }
  // Why it is lost, or has left.
  const std::string& detail() const { return detail_; }
  // Processes that came in the place of another one.
  uint64_t restarts() const { return restarts_; }
  // Evaluators that were rejected as they computed another job.
  uint64_t of_another_job() const { return of_another_job_; }

  // While connected.
  void Send(const proto::EvaluatorOrder& order) { stream_->Send(MakeMessage(order)); }
  // Tells it why it cannot take part and ends its stream; `final`: for good.
  void Reject(const std::string& reason, bool final);

 private:
  void OnMessage(uint64_t key, const Message& message);
  void OnHello(uint64_t key, const proto::EvaluatorHello& hello);
  void OnReady(const proto::EvaluatorReady& ready);
  void OnClosed(uint64_t key, const absl::Status& status);
  void Reject(const proto::Rejected& rejected);
  // A stream of somebody who is not let in.
  void TurnAway(uint64_t key, const std::string& reason, bool final);
  void Gone(State state, const std::string& why);

  const Options options_;
  const uint32_t job_fingerprint_;  // of options_.job_text
  uint64_t next_key_ = 1;
  // Streams without a hello, and such as have been refused, until they have closed.
  std::map<uint64_t, std::unique_ptr<Stream>> others_;
  uint64_t key_ = 0;  // of the evaluator's stream
  std::unique_ptr<Stream> stream_;
  State state_ = State::kNone;
  std::optional<uint64_t> incarnation_;  // of the last one
  bool was_up_ = false;                  // and has not left since
  Time lost_at_{};
  uint64_t test_examples_ = 0;
  std::string address_;
  std::string detail_;
  uint64_t restarts_ = 0;
  uint64_t of_another_job_ = 0;
  Time claims_said_until_{};  // refusals of others are not logged until then
};

// "preparing", "up", "lost", "left".
const char* StateName(EvaluatorPeer::State state);

// One that is lost is waited for so long.
inline constexpr Time kEvaluatorPatience = std::chrono::seconds(10);

}  // namespace shoal
