#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/rpc/network.h"
#include "proto/worker.pb.h"

namespace shoal {

// Returns the order to a worker or an evaluator that cannot take part. `final`: a retry is useless.
proto::Rejected MakeRejected(const std::string& reason, bool final);

// The streams of workers or evaluators that have no seat, and the rules by which a process gets
// one. A seat is a worker's index, or the place of the only evaluator.
//
//   Add ──▶ joining ── Admit ──▶ seated: the caller owns the stream
//              │                    │
//              └─ RejectJoining     └─ RejectSeated, KeepUntilClosed
//                 RejectClaim ──────▶ closing ── OnClosed ──▶ gone
//
// Two processes may claim one seat. The first keeps it while its stream is open, even if it sends
// nothing; Keepalive ends the stream of a process that is gone or stands still. The second is
// rejected and may retry. This protects a working process from one that claims its seat by
// mistake. Loop thread only.
class Admission {
 public:
  using Key = uint64_t;  // of a stream; never 0, never used again
  struct Options {
    EventLoop* loop = nullptr;     // outlives this
    uint32_t job_fingerprint = 0;  // of this run's job
    std::string newcomer;          // for the log: "a worker"
    // Returns the message that brings the rejection to the process.
    std::function<Message(const proto::Rejected&)> message;
  };
  struct Seat {
    uint64_t incarnation = 0;    // of the last process in it
    uint64_t restarts = 0;       // how often another process took it
    Time claims_logged_until{};  // rejected claims are not logged until then
  };
  explicit Admission(Options options);

  // Takes over a new stream. It is joining until its hello is accepted.
  Key Add(std::unique_ptr<Stream> stream);
  // Returns the stream while it is joining, nullptr otherwise.
  const Stream* joining(Key key) const;
  // The process takes the seat. Returns its stream, which must be joining.
  std::unique_ptr<Stream> Admit(Key key, int seat, uint64_t incarnation);

  // True if this process is the last one in the seat.
  bool IsLastIn(int seat, uint64_t incarnation) const;
  // All seats that were taken and not forgotten.
  const std::map<int, Seat>& seats() const { return seats_; }
  void Forget(int seat) { seats_.erase(seat); }

  // Rejects a joining stream: logs and sends the reason, and ends the stream. Requires a joining
  // stream, as RejectClaim does.
  void RejectJoining(Key key, const std::string& reason, bool final);
  // Rejects a joining stream that claims the seat of a live process. Never final, because the
  // coordinator does not know which of the two processes is wanted. Logs it at most once a minute.
  void RejectClaim(Key key, int seat, const std::string& reason);
  // Rejects a joining stream whose certificate is not for the index that it claims. Final. Does not
  // log it, because Stream::CheckClaim() has.
  void RejectUnauthorized(Key key, const std::string& reason);
  // Rejects a process that has a seat. `who` names it in the log.
  void RejectSeated(Key key, std::unique_ptr<Stream> stream, const std::string& who,
                    const proto::Rejected& rejected);
  // Returns the rejection for a process that computes the job with this fingerprint, and counts it.
  // nullopt: it is this run's job.
  std::optional<proto::Rejected> CheckJob(uint32_t fingerprint);
  // Number of rejections by CheckJob.
  uint64_t of_another_job() const { return of_another_job_; }

  // Owns the stream of a process that leaves, until it has closed.
  void KeepUntilClosed(Key key, std::unique_ptr<Stream> stream);
  // The stream has closed. Destroys it if it has no seat.
  void OnClosed(Key key);

 private:
  // Sends the rejection. Keeps the stream until it has closed, so that the reason arrives.
  void Reject(Key key, std::unique_ptr<Stream> stream, const proto::Rejected& rejected);
  std::unique_ptr<Stream> TakeJoining(Key key);

  const Options options_;
  Key next_key_ = 1;
  std::map<Key, std::unique_ptr<Stream>> joining_;
  std::map<Key, std::unique_ptr<Stream>> closing_;
  std::map<int, Seat> seats_;
  uint64_t of_another_job_ = 0;
};

}  // namespace shoal
