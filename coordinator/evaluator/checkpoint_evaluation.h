#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/log/last_result.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/evaluations.h"
#include "common/run/history.h"
#include "common/run/run_paths.h"
#include "coordinator/evaluator/evaluation_backlog.h"
#include "coordinator/evaluator/evaluator_peer.h"
#include "coordinator/run/csv_writer.h"
#include "coordinator/run/progress.h"
#include "coordinator/takeover/checkpoint_rows.h"
#include "coordinator/turns/wakeup.h"

namespace shoal {

// The directories of checkpoints that must not be removed: they are being evaluated, or their
// result is not on disk yet. Thread-safe.
class CheckpointsInUse {
 public:
  void Add(const std::string& directory) {
    MutexLock lock(&mutex_);
    directories_.insert(directory);
  }
  void Remove(const std::string& directory) {
    MutexLock lock(&mutex_);
    directories_.erase(directory);
  }
  std::set<std::string> Get() const {
    MutexLock lock(&mutex_);
    return directories_;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> directories_ ABSL_GUARDED_BY(mutex_);
};

// Sends each checkpoint of a run to the cluster's evaluator, if there is one, and keeps
// evaluations.csv. The evaluator needs only the test set: it requests the values, and the
// coordinator reads them. It gets one checkpoint at a time.
//
//   idle ── one is there, an evaluator is up ──▶ sent ── its sums have come ────────▶ verifying
//    ▲                                     (values, batches)                              │
//    └────── no headway, the evaluator is gone, it is damaged ────────────────────────────┤
//    └─────────────────────── counted, once; the line is written meanwhile ───────────────┘
//
// A result belongs to a checkpoint by its name, and counts once. If an evaluator or a coordinator
// is killed, the checkpoint is evaluated again, but no line is written twice. Loop thread only;
// files are read and written in Offload.
class CheckpointEvaluation {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    CheckpointStore* store = nullptr;
    const CheckpointLayout* layout = nullptr;
    const Progress* progress = nullptr;  // for the names and values of metrics
    RunPaths paths;
    const RunLock* lock = nullptr;  // see CsvWriter
    std::string job_text;
    absl::Status usable;      // see EvaluatorPeer::Options
    bool listed = false;      // the cluster spec lists an evaluator, so it is expected
    int keep = 3;             // checkpoints that are kept on disk
    uint64_t batch_size = 0;  // of the job
    // Training waits for the results of epochs' ends: the evaluator drops any other checkpoint for
    // them.
    bool training_waits = false;
    // An evaluator without headway for this long is rejected and counts as gone.
    Time timeout{};
    std::function<absl::Status(const proto::EvaluatorReady&)> check_ready;  // see EvaluatorPeer
    // Returns whether the checkpoint belongs to the run in its current state, so that its result
    // can be counted.
    std::function<bool(const StoredCheckpoint&)> may_be_evaluated;
    // Returns whether the checkpoint is at the end of an epoch without a result yet.
    std::function<bool(const StoredCheckpoint&)> is_awaited;
    // A result: sums over `examples` examples.
    struct Sums {
      uint64_t examples = 0;
      double loss = 0;
      std::vector<double> metrics;
    };
    std::function<void(const StoredCheckpoint&, const Sums&)> on_result;
    // Raised when an evaluator came or went, when the pending results have changed, after writes of
    // evaluations.csv, and at the end.
    Wakeup* wakeup = nullptr;
  };
  explicit CheckpointEvaluation(Options options);

  // Takes over a new Evaluate stream; returns the callbacks for it.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream) { return peer_.Accept(std::move(stream)); }

  // This coordinator leads the run: begins with the checkpoints on disk, and retries a failed read
  // every second. Only the first call counts.
  void Begin();
  // A checkpoint was written.
  void Add(const StoredCheckpoint& checkpoint);
  // Sends the next checkpoint to the evaluator, if possible. Call it when the answers of the
  // functions of Options may have changed.
  void SendNext();
  void Tick();

  // Returns whether the evaluator handles the end of this epoch: it is present and has not failed
  // at it, and the disk can be read.
  bool Takes(uint64_t epoch) const {
    return peer_.present() && !skipped_.contains(epoch) && last_read_.result().ok();
  }
  // Returns whether the evaluator will bring the result of this checkpoint.
  bool WillBring(const StoredCheckpoint& checkpoint) const;
  // Workers evaluate because the evaluator is missing. Logs this once, if one was expected.
  void WarnEvaluatorMissing();

  // The job is at its end. Evaluates the awaited checkpoints unless the job has failed, then
  // dismisses the evaluator; ended() is true afterwards. Does not wait for an evaluator that has
  // been absent for longer than kEvaluatorPatience, nor that long for a disk that cannot be read.
  // If the job has failed, waits a while for a listed evaluator that is absent, because it may
  // still be starting.
  void End(const std::string& failure);

  // True after End once the evaluator has gone, or if none comes.
  bool ended() const { return ended_; }
  // Returns whether results were written to evaluations.csv since the last call. Their checkpoints
  // are in use until this call.
  bool TakeWritten();

  // The checkpoints in use, shared with the code that removes checkpoints.
  std::shared_ptr<CheckpointsInUse> in_use() const { return in_use_; }
  // CsvWriter::Owed for evaluations.csv.
  std::string Owed() const { return csv_.Owed(); }

  // --- For people and Prometheus ---

  const EvaluatorPeer& peer() const { return peer_; }
  // Number of checkpoints evaluated since the start.
  uint64_t evaluated() const { return evaluated_; }
  size_t backlog() const { return backlog_.checkpoints().size(); }
  // "step-…: 3 of 12 batches"; empty if no evaluation is in progress.
  std::string CurrentActivity() const;

 private:
  struct Current {
    uint64_t number = 0;
    StoredCheckpoint checkpoint;
    std::unique_ptr<CheckpointRows> rows;
    Time began{};
    Time headway_at{};
    int wanted = 0;  // requested values that are being read
    uint64_t batches_done = 0;
    uint64_t batches = 0;
    bool verifying = false;
  };
  struct Found {
    absl::StatusOr<std::vector<StoredCheckpoint>> stored;
    absl::StatusOr<Evaluations> evaluations;
  };
  void Read();
  void OnRead(const Found& found);
  bool IsKnown(const StoredCheckpoint& checkpoint) const;
  bool IsWanted(const StoredCheckpoint& checkpoint) const;
  void OnEvaluatorReady();
  void OnReport(const proto::EvaluatorReport& report);
  void OnValuesWanted(const proto::ValuesWanted& wanted);
  // The requested values are read: sends them.
  void OnRows(const proto::EvaluatorOrder& values);
  void OnEvaluated(const proto::CheckpointEvaluated& evaluated);
  void OnVerified(const proto::CheckpointEvaluated& evaluated, const absl::Status& whole);
  void OnEvaluatorGone(bool in_order);
  void Count(const StoredCheckpoint& checkpoint, const proto::CheckpointEvaluated& evaluated,
             Time took);
  // The current checkpoint cannot be evaluated: skips it for good.
  void SkipCurrent(const std::string& why);
  void StopCurrent();
  std::optional<StoredCheckpoint> Next() const;
  std::vector<HistoryLine> LinesFrom(uint64_t place) const;
  bool Owes() const;
  // At the end: whether the results that it owes may still come.
  bool MayBringOwed() const;
  void MaybeEnd();
  void OnEnded();

  const Options options_;
  EvaluatorPeer peer_;
  EvaluationBacklog backlog_;
  const std::shared_ptr<CheckpointsInUse> in_use_ = std::make_shared<CheckpointsInUse>();
  bool begun_ = false;
  bool read_ = false;                    // the content of the disk is known
  LastResult last_read_;                 // of it; a failure is retried
  std::vector<StoredCheckpoint> added_;  // added before it was known
  uint64_t number_ = 0;
  std::optional<Current> current_;
  std::set<uint64_t> skipped_;  // epochs
  uint64_t evaluated_ = 0;      // since the start
  bool said_it_is_not_there_ = false;

  std::vector<CheckpointResult> results_;    // of all coordinators
  std::set<std::string> known_;              // names of the checkpoints in results_
  size_t written_ = 0;                       // number of results_ on disk at the last TakeWritten
  std::map<size_t, std::string> unwritten_;  // index in results_ -> directory, of the others
  CsvWriter csv_;                            // a line for each of results_, by its index

  std::optional<std::string> failure_;  // set at the job's end; empty: the job is done
  Time ending_at_{};
  bool dismissed_ = false;
  bool ended_ = false;
  Timer read_again_{options_.loop};
  Timer dismiss_deadline_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
