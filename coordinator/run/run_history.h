#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/callback/callback.h"
#include "common/checkpoint/manifest.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/run/history.h"
#include "common/run/run_paths.h"
#include "common/run/run_verdict.h"
#include "common/step_plan/step_plan.h"
#include "coordinator/run/csv_writer.h"
#include "coordinator/run/progress.h"

namespace shoal {

// The epochs of a run: closes those whose steps are all done, keeps history.csv, which the
// coordinators before this one have written too, and has the job's callbacks decide by what is on
// disk. Loop thread only; files are read and written in Offload.
class RunHistory {
 public:
  struct Options {
    EventLoop* loop = nullptr;    // these outlive this
    FileSystem* files = nullptr;  // used in Offload only
    Progress* progress = nullptr;
    RunPaths paths;
    std::vector<Callback> callbacks;
    // What earlier coordinators wrote is known from now on.
    std::function<void()> on_read;
    // As CsvWriter has it.
    std::function<void()> on_idle;
  };
  explicit RunHistory(Options options);

  // Reads what earlier coordinators wrote, which may be other than when it was read last. No step
  // waits for it: a disk may hang.
  void ReadEarlier();
  // It was read. Nothing is written before.
  bool read() const { return read_; }
  // And the epochs of the run are laid out: results can be taken.
  bool takes_results() const { return read_ && plan_.has_value(); }

  // Steps below `base` are done in the timeline that is opened; epochs that end above did not
  // happen. Of the one that it begins in, `newest`, a checkpoint of the timeline or null, tells
  // what its steps have come to.
  void Begin(const StepPlan& plan, uint64_t base, const Manifest* newest);
  // Takes what was read after Begin.
  void TakeEarlier();
  // The epochs that end at `base` or below: all their steps are done.
  void CloseUpTo(uint64_t base);
  // As many of the first epochs are closed.
  uint64_t closed_epochs() const { return closed_; }
  // What evaluating the values of the epoch's end has come to.
  void SetTestResult(uint64_t epoch, double loss, const std::vector<double>& metric_sums,
                     uint64_t examples);
  bool IsEvaluated(uint64_t epoch) const;

  // Reads what the callbacks make of the run once the file has all there is, `epoch` too, and calls
  // `decided` if `asked` still holds then; verdict() is that from then on. Does nothing while that
  // is going on, or waits for files, which ends with on_idle; after a failure nothing for a while.
  void Decide(uint64_t epoch, std::function<bool()> asked, std::function<void()> decided);
  // As it was read last.
  const RunVerdict& verdict() const { return verdict_; }
  // Reads it again, as an evaluator's results have changed what is the best.
  void ReadVerdict();

  // As CsvWriter has them, of history.csv.
  std::string Owed() const { return csv_.Owed(); }
  const std::string& error() const { return csv_.error(); }

 private:
  std::vector<HistoryLine> LinesFrom(uint64_t epoch) const;
  void OnVerdict(uint64_t epoch, const absl::StatusOr<RunVerdict>& verdict,
                 const std::function<void()>& decided);

  const Options options_;
  Progress& progress_;
  std::optional<StepPlan> plan_;
  uint64_t closed_ = 0;
  std::vector<proto::EpochResult> earlier_;  // of the coordinators before this one
  bool read_ = false;                        // these are known
  RunVerdict verdict_;
  bool deciding_ = false;
  Time decide_again_at_{};        // after a failure
  CsvWriter csv_;                 // a line for each epoch; held while earlier_ is being read
  std::optional<Scope> reading_;  // of ReadEarlier; the newest call has it
  const Scope scope_{options_.loop};
};

}  // namespace shoal
