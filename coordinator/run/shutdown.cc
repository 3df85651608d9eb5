#include "coordinator/run/shutdown.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/checkpoint/model_export.h"
#include "common/daemon/process/exit_code.h"
#include "common/log/logging.h"
#include "common/run/run_outcome.h"

namespace shoal {
namespace {

// At the end, workers and ps that do not answer within this time count as gone.
constexpr Time kDismissTimeout = std::chrono::seconds(5);
// The end waits this long for files: the disk may be full or may not answer. The process then waits
// for the same time again.
constexpr Time kDiskPatience = std::chrono::seconds(3);

absl::Status ExportResult(const Shutdown::Result& result, const std::string& directory,
                          const std::string& slot, FileSystem* files) {
  const std::optional<StoredCheckpoint>& last = result.last;
  // If the two differ, `values` is the best epoch's and not verified yet. The last one is verified.
  if (last.has_value() && last->directory != result.values.directory) {
    const absl::Status sound = VerifyCheckpoint(result.values, files);
    const bool lost = absl::IsDataLoss(sound) || absl::IsNotFound(sound);
    if (lost && last->manifest.finite()) {
      LogWarning(absl::StrCat("the model gets the values of the last epoch instead of the best: ",
                              std::string(sound.message())));
      return ExportModel(*last, directory, slot, files);
    }
    if (!sound.ok()) return sound;
  }
  return ExportModel(result.values, directory, slot, files);
}

}  // namespace

Shutdown::Shutdown(Options options) : options_(std::move(options)) {}

void Shutdown::Enter(Phase phase) {
  if (std::exchange(phase_, phase) == Phase::kWorking) options_.scheduler->End();
}

void Shutdown::Save(const Result& result) {
  Enter(Phase::kSaving);
  found_ = result.found;
  const std::string directory = options_.paths.model();
  scope_.Offload(
      Lane::kFiles,
      [files = options_.files, slot = options_.average_slot, result, directory] {
        return ExportResult(result, directory, slot, files);
      },
      [this, directory](const absl::Status& saved) {
        if (phase_ != Phase::kSaving) return;
        if (!saved.ok()) return Over(saved);
        LogInfo("the model is saved in " + directory);
        job_outcome_ = absl::OkStatus();
        DismissWorkers();
      });
}

void Shutdown::Fail(const std::string& why) {
  failure_ = why;
  job_outcome_ = absl::DataLossError(why);
  DismissWorkers();
}

void Shutdown::BreakOff(const absl::Status& status) {
  const bool for_good = IsRestartUseless(ExitCodeOf(status)) && !absl::IsAborted(status);
  // A coordinator that was rejected or fenced off has ended nothing. Its workers may find the one
  // that leads.
  if (!working() || !for_good || !options_.lock->leading()) return Over(status);
  failure_ = std::string(status.message());
  job_outcome_ = status;
  ps_stay_ = true;
  options_.fleet->Close();
  DismissWorkers();
}

void Shutdown::DismissWorkers() {
  Enter(Phase::kDismissingWorkers);
  options_.membership->EndJob(failure_);
  dismiss_deadline_.Set(kDismissTimeout, [this] { DismissPs(); });
  OnWorkerGone();  // in case there are no workers
}

// Goes on once all workers are gone. More may connect and must learn of the end: workers of a
// predecessor, and workers that are still starting when the job fails early.
void Shutdown::OnWorkerGone() {
  const bool more_may_come = found_ || (!failure_.empty() && !options_.membership->AllNotified());
  if (options_.membership->workers().empty() && !more_may_come) DismissPs();
}

// Unreachable ps count as stopped.
void Shutdown::DismissPs() {
  if (phase_ != Phase::kDismissingWorkers) return;
  Enter(Phase::kDismissingPs);
  if (ps_stay_) return DismissEvaluator();
  options_.fleet->Dismiss();
  dismiss_deadline_.Set(kDismissTimeout, [this] { DismissEvaluator(); });
}

// No process trains any more, so the evaluator has no deadline.
void Shutdown::DismissEvaluator() {
  if (phase_ != Phase::kDismissingPs) return;
  dismiss_deadline_.Cancel();
  if (!options_.dismiss_evaluator) return Over(*job_outcome_);
  Enter(Phase::kDismissingEvaluator);
  options_.fleet->Close();
  options_.dismiss_evaluator(failure_);
}

void Shutdown::OnEvaluatorGone() {
  if (phase_ == Phase::kDismissingEvaluator) Over(*job_outcome_);
}

void Shutdown::OnStop() {
  if (phase_ != Phase::kDismissingEvaluator) return;
  if (failure_.empty()) {
    LogWarning(
        "stopping without the evaluation of the last checkpoint; the job is done, and `shoal "
        "evaluate " +
        options_.paths.directory + "` computes it");
  } else {
    LogWarning("stopping before the evaluator was told of the failure");
  }
  Over(*job_outcome_);
}

void Shutdown::OnPsStopping(int ps) {
  if (phase_ != Phase::kDismissingPs) return;  // the ps leaves on its own
  stopping_ps_.insert(ps);
  if (static_cast<int>(stopping_ps_.size()) == options_.fleet->size()) DismissEvaluator();
}

void Shutdown::Over(const absl::Status& status) {
  if (over()) return;
  Enter(working() ? Phase::kBrokenOff : Phase::kOver);
  outcome_ = ps_stay_ ? *job_outcome_ : status;
  options_.on_outcome(outcome_);
  if (!outcome_.ok() && !absl::IsCancelled(outcome_)) failure_ = std::string(outcome_.message());
  // A coordinator that was fenced off does not end the run: another one leads it.
  if (options_.lock->leading() && !absl::IsAborted(status)) KeepOutcome();
  options_.fleet->Close();
  options_.lock->Pause();
  over_deadline_.Set(kDiskPatience, [this] {
    const std::vector<std::string> owed = options_.owed();
    LogWarning(absl::StrCat(
        "stopping without waiting longer for the disk of ", options_.paths.directory,
        ", which has not finished its writes within ", WholeSeconds(kDiskPatience), " s",
        owed.empty() ? "" : "; the newest lines are lost of ", absl::StrJoin(owed, "; ")));
    options_.on_over(outcome_);
  });
  OnWritten();
}

// Writes the outcome to the run directory, so that it can be read after this process is gone.
void Shutdown::KeepOutcome() {
  const RunOutcome outcome{ExitCodeOf(outcome_), std::string(outcome_.message())};
  options_.loop->Offload(
      Lane::kFiles,
      [files = options_.files, paths = options_.paths, outcome] {
        if (const absl::Status kept = WriteRunOutcome(paths, outcome, files); !kept.ok())
          LogWarning("cannot write the outcome of the run: " + std::string(kept.message()));
      },
      [] {});
}

void Shutdown::OnWritten() {
  if (!over() || ends_after_writes_ || !options_.owed().empty()) return;
  ends_after_writes_ = true;
  EndAfterWrites();
}

// Releases the run lock after all writes, so that the next coordinator finds all files. Does not
// release it if files may still be written.
void Shutdown::EndAfterWrites() {
  const auto end = [this] {
    if (!over_deadline_.pending()) return;
    over_deadline_.Cancel();
    options_.on_over(outcome_);
  };
  scope_.Offload(
      Lane::kFiles, [] {},
      [this, end] {
        if (!over_deadline_.pending()) return;
        options_.lock->Release();
        scope_.Offload(
            Lane::kBrief, [] {}, end);
      });
}

}  // namespace shoal
