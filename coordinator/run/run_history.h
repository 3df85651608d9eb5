#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/callback/callback.h"
#include "common/checkpoint/manifest.h"
#include "common/log/last_result.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/history.h"
#include "common/run/run_paths.h"
#include "common/run/run_verdict.h"
#include "common/step_plan/step_plan.h"
#include "coordinator/run/csv_writer.h"
#include "coordinator/run/progress.h"
#include "coordinator/turns/wakeup.h"

namespace shoal {

// The epochs of a run. Closes an epoch once all its steps are done. Keeps history.csv, which
// earlier coordinators have written too. Runs the job's callbacks on the content of the disk. Loop
// thread only; files are read and written in Offload.
class RunHistory {
 public:
  struct Options {
    EventLoop* loop = nullptr;    // these outlive this
    FileSystem* files = nullptr;  // used in Offload only
    Progress* progress = nullptr;
    RunPaths paths;
    std::vector<Callback> callbacks;
    const RunLock* lock = nullptr;  // see CsvWriter
    // Raised when the results of earlier coordinators are read, and when no write of history.csv is
    // in flight any more.
    Wakeup* wakeup = nullptr;
  };
  explicit RunHistory(Options options);

  // Reads the results of earlier coordinators, again if they were read before: they may have
  // changed. Retries a failed read every second. No step waits for this, as a disk may hang.
  void ReadEarlier();
  // True once they are read. Nothing is written before.
  bool read() const { return read_; }
  // The result of the newest read; OK before the first one.
  const absl::Status& last_read() const { return last_read_.result(); }
  // True once they are read and Begin was called: the history can take results.
  bool takes_results() const { return read_ && plan_.has_value(); }

  // A timeline was opened in which the steps below `base` are done. Drops epochs that end above
  // `base`. `newest`, a checkpoint of the timeline or null, holds the sums of the epoch in which
  // the timeline begins.
  void Begin(const StepPlan& plan, uint64_t base, const Manifest* newest);
  // Closes the epochs that end at `base` or below: all their steps are done.
  void CloseUpTo(uint64_t base);
  // Number of closed epochs, counted from the first.
  uint64_t closed_epochs() const { return closed_; }
  // Sets the evaluation result of the values at the epoch's end.
  void SetTestResult(uint64_t epoch, double loss, const std::vector<double>& metric_sums,
                     uint64_t examples);
  bool IsEvaluated(uint64_t epoch) const;

  // Runs the callbacks on the files of the run, off the loop. If `still_due` returns true after
  // that, and the file includes `epoch`, sets verdict() and calls `on_verdict`. Does nothing while
  // callbacks run, while lines are owed, or for a while after a failure.
  void RunCallbacks(uint64_t epoch, std::function<bool()> still_due,
                    std::function<void()> on_verdict);
  // The verdict of the callbacks that was read last.
  const RunVerdict& verdict() const { return verdict_; }
  // Reads the verdict again: an evaluator's results may have changed the best checkpoint.
  void ReadVerdict();

  // CsvWriter::Owed and CsvWriter::last_write for history.csv.
  std::string Owed() const { return csv_.Owed(); }
  const absl::Status& last_write() const { return csv_.last_write(); }

 private:
  struct Found {
    absl::StatusOr<History> earlier;
    absl::StatusOr<RunVerdict> verdict;
  };
  std::vector<HistoryLine> LinesFrom(uint64_t epoch) const;
  void Read();
  void OnRead(const Found& found);
  // Keeps the verdict before if this one is an error.
  void TakeVerdict(const absl::StatusOr<RunVerdict>& verdict);
  // Adds the results of earlier coordinators if they were read after Begin.
  void TakeEarlier();
  void OnVerdict(uint64_t epoch, const absl::StatusOr<RunVerdict>& verdict,
                 const std::function<void()>& on_verdict);

  const Options options_;
  Progress& progress_;
  std::optional<StepPlan> plan_;
  uint64_t closed_ = 0;
  std::vector<proto::EpochResult> earlier_;  // results of earlier coordinators
  bool read_ = false;                        // earlier_ is known
  LastResult last_read_;                     // of history.csv
  RunVerdict verdict_;
  LastResult last_verdict_;
  bool running_callbacks_ = false;
  Time run_again_at_{};           // after a failure
  CsvWriter csv_;                 // a line for each epoch; held while earlier_ is being read
  std::optional<Scope> reading_;  // of the newest read; a new one drops the read before
  Timer read_again_{options_.loop};
  const Scope scope_{options_.loop};
};

}  // namespace shoal
