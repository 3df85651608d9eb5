#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "coordinator/run_parts.h"
#include "coordinator/wakeup.h"

namespace shoal {

// Decides what a run does next: the one place, at most once in a turn of the loop.
//
//   a part reports a fact ──▶ wakeup raised ──▶ next turn: Reconcile
//                                  ▲                 │
//                                  └── a decision ───┘   changes a fact
//
// No part calls a decision from inside its own: where a decision changes a fact, the wakeup runs
// Reconcile once more, a turn later. Loop thread only.
class Reconciler {
 public:
  // `parts` outlives this; complete before the first call.
  explicit Reconciler(RunParts* parts);

  // Raised after any change of a fact: offers work to all workers that are ready.
  Wakeup& wakeup() { return wakeup_; }
  // A worker has reported. Only it and the workers in line are offered work, so that a report
  // costs the same for any number of workers.
  void OnReport(const Worker& worker);

  // Decides now. For the tick alone, which no part calls.
  void Reconcile();

  // Takes this cut. Requires an idle Checkpointer and an open timeline.
  void BeginCut(const CutPlan::Cut& cut);
  CutPlan::Steps Steps() const;
  // Saves this checkpoint's values as the model, which ends the run. `found`: a former coordinator
  // has written the checkpoint.
  void SaveModel(const StoredCheckpoint& result, bool found = false);

 private:
  // Returns whether steps may be leased.
  bool Plan();
  void PlanEndOrCut();
  void LimitLeases();
  void ServeReported();
  // The callbacks can decide: the epoch's result and its checkpoint are there. A report of its last
  // steps may still be on its way.
  bool HasAllToDecide() const;
  // The callbacks only lack the result of the newest checkpoint, which the evaluator brings.
  bool EvaluatorDecides() const;
  // The next cut at an epoch's end need not be held for the workers.
  bool LeftToEvaluator() const;
  // Has the callbacks decide from what is on disk.
  void Decide();
  void OnDecided();

  RunParts& parts_;
  std::set<StepDispatcher::WorkerKey> reported_;  // since it last decided
  Wakeup wakeup_;
  Wakeup report_wakeup_;
};

}  // namespace shoal
