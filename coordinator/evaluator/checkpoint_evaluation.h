#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_store.h"
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

namespace shoal {

// The directories of checkpoints that may not be removed, as they are being evaluated, or what that
// has come to is not on disk yet. Thread-safe.
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

// Has each checkpoint of a run evaluated by the evaluator of the cluster, where there is one, and
// keeps evaluations.csv. The evaluator needs nothing but the test set: it asks for the values,
// which are read here, and one checkpoint at a time is sent to it.
//
//   idle ── one is there, an evaluator is up ──▶ handed out ── its sums have come ──▶ verifying
//    ▲                                      (values, batches)                             │
//    └────── nobody gets on, the evaluator is gone, it is damaged ────────────────────────┤
//    └─────────────────────── counted, once; the line is written meanwhile ───────────────┘
//
// What it has come to counts for a checkpoint, by its name, whoever computed it: an evaluator that
// is killed, or a coordinator, has it evaluated again and no line twice. Loop thread only; files
// are read and written in Offload.
class CheckpointEvaluation {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    CheckpointStore* store = nullptr;
    const CheckpointLayout* layout = nullptr;
    const Progress* progress = nullptr;  // for the names of metrics, and their figures
    RunPaths paths;
    std::string job_text;
    absl::Status usable;      // as EvaluatorPeer has it
    bool listed = false;      // in the cluster spec: it is expected
    int keep = 3;             // checkpoints that are kept on disk
    uint64_t batch_size = 0;  // of the job
    // Training waits for the results of epochs' ends: nothing else keeps the evaluator from them.
    bool training_waits = false;
    // An evaluator that gets no further for so long is as one that is gone.
    Time timeout{};
    std::function<absl::Status(const proto::EvaluatorReady&)> check_ready;  // likewise
    // It is of this run as it now is, and what is found of it can be counted.
    std::function<bool(const StoredCheckpoint&)> may_be_evaluated;
    // At an epoch's end of which there is no result yet.
    std::function<bool(const StoredCheckpoint&)> is_awaited;
    // A result, of sums over so many examples.
    struct Sums {
      uint64_t examples = 0;
      double loss = 0;
      std::vector<double> metrics;
    };
    std::function<void(const StoredCheckpoint&, const Sums&)> on_result;
    // Who is there has changed, or what is still to come.
    std::function<void()> on_changed;
    // As CsvWriter's on_idle, of evaluations.csv.
    std::function<void()> on_written;
    // After End: the evaluator has gone, or there is none.
    std::function<void()> on_ended;
  };
  explicit CheckpointEvaluation(Options options);

  // A new Evaluate stream.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream) { return peer_.Accept(std::move(stream)); }

  // The run is this coordinator's: what is on disk is evaluated. Only the first call counts.
  void Begin();
  // A checkpoint was written.
  void Add(const StoredCheckpoint& checkpoint);
  // Hands one out, if it can. To be called when what the functions of Options say may have changed.
  void HandOut();
  void Tick();

  // Whether the end of this epoch is left to the evaluator: it is there, and has not failed at it.
  bool Takes(uint64_t epoch) const { return peer_.present() && !given_up_.contains(epoch); }
  // It is to bring the result of this checkpoint.
  bool WillBring(const StoredCheckpoint& checkpoint) const;
  // Workers evaluate, as it is not there: said once, where it was expected.
  void WarnEvaluatorMissing();

  // The job is at its end: what is awaited is evaluated, unless the job has failed, then the
  // evaluator goes. on_ended follows, perhaps in this call. Who has not been there for a while is
  // not waited for.
  void End(const std::string& failure);

  // Shared with whoever removes checkpoints.
  std::shared_ptr<CheckpointsInUse> in_use() const { return in_use_; }
  // As CsvWriter has it, of evaluations.csv.
  std::string Owed() const { return csv_.Owed(); }

  // --- For people and Prometheus ---

  const EvaluatorPeer& peer() const { return peer_; }
  uint64_t evaluated() const { return evaluated_; }
  size_t backlog() const { return backlog_.checkpoints().size(); }
  // "step-…: 3 of 12 batches"; empty where nothing is being evaluated.
  std::string Doing() const;

 private:
  struct Current {
    uint64_t number = 0;
    StoredCheckpoint checkpoint;
    std::unique_ptr<CheckpointRows> rows;
    Time began{};
    Time headway_at{};
    int wanted = 0;  // answers that are being read
    uint64_t batches_done = 0;
    uint64_t batches = 0;
    bool verifying = false;
  };
  void OnRead(const absl::StatusOr<std::vector<StoredCheckpoint>>& stored, Evaluations evaluations);
  bool IsKnown(const StoredCheckpoint& checkpoint) const;
  bool IsWanted(const StoredCheckpoint& checkpoint) const;
  void OnEvaluatorReady();
  void OnReport(const proto::EvaluatorReport& report);
  void OnValuesWanted(const proto::ValuesWanted& wanted);
  // They are read: the message that brings them.
  void OnRows(const proto::EvaluatorOrder& values);
  void OnEvaluated(const proto::CheckpointEvaluated& evaluated);
  void OnVerified(const proto::CheckpointEvaluated& evaluated, const absl::Status& whole);
  void OnEvaluatorGone(bool in_order);
  void Count(const StoredCheckpoint& checkpoint, const proto::CheckpointEvaluated& evaluated,
             Time took);
  // The checkpoint at hand comes to nothing, for good.
  void GiveUp(const std::string& why);
  void StopCurrent();
  std::optional<StoredCheckpoint> Next() const;
  std::vector<HistoryLine> LinesFrom(uint64_t place) const;
  void OnWritten();
  bool Owes() const;
  void MaybeEnd();
  void OnEnded();

  const Options options_;
  EvaluatorPeer peer_;
  EvaluationBacklog backlog_;
  const std::shared_ptr<CheckpointsInUse> in_use_ = std::make_shared<CheckpointsInUse>();
  bool begun_ = false;
  bool read_ = false;                    // what there was on disk is known
  std::vector<StoredCheckpoint> added_;  // before that
  uint64_t number_ = 0;
  std::optional<Current> current_;
  std::set<uint64_t> given_up_;  // epochs
  uint64_t evaluated_ = 0;       // since the start
  bool said_it_is_not_there_ = false;

  std::vector<CheckpointResult> results_;    // of all coordinators
  std::set<std::string> known_;              // their checkpoints
  size_t written_ = 0;                       // of results_
  std::map<size_t, std::string> unwritten_;  // the directories of the others, by their place there
  CsvWriter csv_;                            // a line for each of results_, by its place there

  std::optional<std::string> failure_;  // of the job, once it is at its end; or empty
  Time ending_at_{};
  bool dismissed_ = false;
  bool ended_ = false;
  Timer dismiss_deadline_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
