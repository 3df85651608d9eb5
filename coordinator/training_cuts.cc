// How a TrainingRun handles the results of its cuts. Reconciler decides when a cut begins.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/log/logging.h"
#include "coordinator/training_run.h"

namespace shoal {

absl::StatusOr<OperatorRequests::Wanted> TrainingRun::WantedNow() const {
  if (parts_.shutdown->over())
    return absl::UnavailableError("no checkpoint: the coordinator stops");
  const std::optional<StoredCheckpoint>& last = parts_.checkpointer->last();
  if (!parts_.shutdown->working() && last.has_value())  // the final one
    return OperatorRequests::Wanted{last->manifest.timeline, last->manifest.cut_step};
  if (!parts_.scheduler->open() || parts_.drain->NothingToKeep()) {
    const std::vector<std::string> waiting = View().Waiting();
    return absl::UnavailableError(absl::StrCat("no steps are being done now",
                                               waiting.empty() ? "" : ", waiting for ",
                                               absl::StrJoin(waiting, "; ")));
  }
  return OperatorRequests::Wanted{parts_.opened->timeline, parts_.scheduler->KeepableBelow()};
}

void TrainingRun::FinishEvaluation() {
  const std::unique_ptr<Evaluation> done = parts_.scheduler->EndEvaluation();
  // An evaluator that came meanwhile may have brought the same result faster.
  if (!parts_.history->IsEvaluated(done->epoch()))
    parts_.history->SetTestResult(done->epoch(), done->loss(), done->metric_sums(),
                                  done->examples());
  parts_.checkpointer->Release();
  reconciler_.wakeup().Raise();
}

}  // namespace shoal
