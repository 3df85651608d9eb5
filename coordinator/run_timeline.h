#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_store.h"
#include "coordinator/run_parts.h"
#include "coordinator/turns/wakeup.h"

namespace shoal {

// Begins and ends timelines in the parts of a run: its steps, its cuts, and what workers are told.
// PsFleet says when. Loop thread only.
//
//   closed ── OnOpened ──▶ open ── BeginTraining ──▶ training
//     ▲                     │  a worker is ready        │
//     └─ OnOver, Abandon ───┴───────────────────────────┘
//
// After a takeover, an open timeline waits for the first worker. It keeps the applied steps
// meanwhile: a stop, a ps that leaves and `shoal checkpoint now` get their cut.
class RunTimeline {
 public:
  // Both outlive this.
  RunTimeline(RunParts* parts, Wakeup* wakeup) : parts_(*parts), wakeup_(*wakeup) {}

  // The checkpoints on disk at the start, newest first.
  void OnStored(const std::vector<StoredCheckpoint>& newest_first);
  struct ExampleCounts {
    uint64_t training = 0;
    uint64_t test = 0;
  };
  // Records the numbers of examples, and the plan that follows from them. `source`: the worker or
  // the checkpoint that has these numbers.
  void TakeCounts(const ExampleCounts& counts, const std::string& source);
  // All ps serve this timeline. Begins it in the parts, and training if the number of examples is
  // known.
  void OnOpened(const PsFleet::Opened& opened);
  // The timeline is over: ends it in the parts.
  void OnOver(const std::string& why);
  // This coordinator gives the open timeline up: ends it in the parts at once, so that no step of
  // it is leased or counted any more. The next turn applies the remedy to the ps. Requires an open
  // timeline.
  void Abandon(const std::string& why, AbandonedTimeline::Remedy remedy);
  // Announces the open timeline to a worker.
  void Announce(Worker& worker);
  // Begins to lease steps. If they do not fit the job, abandons the timeline or fails the run.
  // Requires an open timeline and the plan.
  void BeginTraining();
  // Before training begins: takes over the steps that the ps have applied. Requires an open
  // timeline.
  void TakeApplied();

 private:
  // Sets up the steps of the open timeline: those that were applied when it was opened, and their
  // total number, if known.
  void LayOutSteps();
  // Returns an error if the job cannot continue from the first step that is not done.
  absl::Status CheckPlan() const;
  // Returns the cut from which the checkpoint schedule counts in the open timeline.
  CutPlan::Last LastCut() const;
  // Returns the newest checkpoint from disk that holds no step above the base of the open timeline.
  // One above may be of a timeline that this one has replaced. Null if there is none.
  const StoredCheckpoint* NewestStored() const;
  // Returns the newest checkpoint of this timeline that is known, or the newest stored one. Null if
  // there is none.
  const StoredCheckpoint* NewestBelowBase() const;

  RunParts& parts_;
  Wakeup& wakeup_;
};

}  // namespace shoal
