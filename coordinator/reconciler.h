#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "coordinator/run_parts.h"
#include "coordinator/turns/wakeup.h"

namespace shoal {

// The one place that decides what a run does next: end the job, run the callbacks, begin a cut, or
// lease work.
//
//   a part keeps an outcome, ──▶ wakeup raised ──▶ next turn of the loop: Turn
//   or changes a fact                 ▲                 │ records outcomes, decides, serves
//                                     └── a decision ───┘ changes a fact
//
// A turn never runs inside a part. If a decision changes a fact, the wakeup runs another turn
// later. Loop thread only.
class Reconciler {
 public:
  // Both must outlive this. `wakeup` calls Turn. All parts must exist before the first turn.
  Reconciler(RunParts* parts, Wakeup* wakeup) : parts_(*parts), wakeup_(*wakeup) {}

  // Ends a run that cannot go on. Records the outcomes of the parts, decides, and offers work to
  // the workers in the queue. Before that offers it to all ready workers, or after kReports only to
  // those that have reported. Only the wakeup calls it.
  void Turn(Wakeup::Cause cause);
  // A turn, and the decisions that depend on time alone. Call it from time to time, never from a
  // part.
  void Tick();

 private:
  // Ends the run if a part has failed, or if a stop has nothing to wait for. Otherwise claims or
  // restores the ps if their timeline was abandoned.
  void EndOrRestore();
  // Closes epochs, begins cuts and sets how far leases may go. Returns false if no work can be
  // leased.
  bool Plan();
  // Ends the job, runs the callbacks, or begins the next cut, if one of these is due.
  void PlanEndOrCut();
  // Sets how far leases may go.
  void LimitLeases();
  // Offers work to the workers, as Turn says.
  void Serve(Wakeup::Cause cause, const std::set<StepDispatcher::WorkerKey>& reported);
  // The epoch's result and checkpoint exist; only history.csv may lag. Reports of the epoch's last
  // steps may still be on the way.
  bool HasAllToDecide() const;
  // The decision only lacks the result of the newest checkpoint, and the evaluator will bring it.
  bool EvaluatorDecides() const;
  // The evaluator handles the epoch's end: the next cut there need not be held for the workers.
  bool LeftToEvaluator() const;
  // Begins this cut. Requires an idle Checkpointer and an open timeline.
  void BeginCut(const CutPlan::Cut& cut);
  // Runs the callbacks on the content of the disk; OnVerdict follows.
  void RunCallbacks();
  // Ends the run if it has no more steps or the callbacks stop it. Otherwise the next epoch may
  // begin.
  void OnVerdict();
  // A former coordinator has finished the job: `end` is in the store.
  void EndFinishedJob(const RunEnd& end);
  // Saves the values of this checkpoint as the model, which ends the run. If they are not finite,
  // the run fails instead. `found`: the result is a former coordinator's.
  void SaveModel(const StoredCheckpoint& result, bool found = false);

  RunParts& parts_;
  Wakeup& wakeup_;
};

}  // namespace shoal
