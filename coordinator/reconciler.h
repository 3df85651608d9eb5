#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "coordinator/run_parts.h"
#include "coordinator/wakeup.h"

namespace shoal {

// The one place that decides what a run does next: end the job, run the callbacks, begin a cut, or
// lease work.
//
//   a part reports a fact ──▶ wakeup raised ──▶ next turn: Reconcile
//                                  ▲                 │
//                                  └── a decision ───┘   changes a fact
//
// Reconcile never runs inside a part. If a decision changes a fact, the wakeup runs Reconcile again
// in the next turn. Loop thread only.
class Reconciler {
 public:
  // `parts` must outlive this. All parts must exist before the first decision.
  explicit Reconciler(RunParts* parts);

  // Raise it after every change of a fact. The next turn then runs Reconcile.
  Wakeup& wakeup() { return wakeup_; }
  // A worker has reported. The next turn decides, and offers work only to the workers that have
  // reported and to those in the queue. This keeps the cost of a report independent of the number
  // of workers.
  void OnReport(const Worker& worker);

  // Decides now, and offers work to all ready workers. Only the tick calls it directly: no part
  // calls the tick.
  void Reconcile();

  // Begins this cut. Requires an idle Checkpointer and an open timeline.
  void BeginCut(const CutPlan::Cut& cut);
  // Returns the current state of the steps. Requires an open timeline.
  CutPlan::Steps Steps() const;
  // Saves the values of this checkpoint as the model, which ends the run. If they are not finite,
  // the run fails instead. `found`: the result is a former coordinator's.
  void SaveModel(const StoredCheckpoint& result, bool found = false);

 private:
  // Closes epochs, begins cuts and sets how far leases may go. Returns false if no work can be
  // leased.
  bool Plan();
  // Ends the job, runs the callbacks, or begins the next cut, if one of these is due.
  void PlanEndOrCut();
  // Sets how far leases may go.
  void LimitLeases();
  // Decides, and offers work to the workers that have reported and to those in the queue.
  void ServeReported();
  // The epoch's result and checkpoint exist; only history.csv may lag. Reports of the epoch's last
  // steps may still be on the way.
  bool HasAllToDecide() const;
  // The decision only lacks the result of the newest checkpoint, and the evaluator will bring it.
  bool EvaluatorDecides() const;
  // The evaluator handles the epoch's end: the next cut there need not be held for the workers.
  bool LeftToEvaluator() const;
  // Runs the callbacks on the content of the disk; OnDecided follows.
  void Decide();
  // Ends the run if it has no more steps or the callbacks stop it. Otherwise the next epoch may
  // begin.
  void OnDecided();

  RunParts& parts_;
  std::set<StepDispatcher::WorkerKey> reported_;  // workers with a report since the last decision
  Wakeup wakeup_;
  Wakeup report_wakeup_;
};

}  // namespace shoal
