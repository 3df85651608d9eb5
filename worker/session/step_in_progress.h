#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/rpc/event_loop.h"
#include "proto/coordinator.pb.h"
#include "worker/step/fragments.h"
#include "worker/step/step_computer.h"

namespace shoal {

// The step that a worker trains, and the halt that may hold back its chunks.
//
//   Begin() ──▶ computing ── MayPush(): the first chunk ──▶ begun ── Computed(), Applied() ──▶ done
//                   │
//                   └── Cancel(): nobody needs the step, and no ps has a chunk of it
//
// The coordinator may take a step back only before its first chunk is pushed. During a halt it
// decides about this, so a step that is not begun pushes nothing. Plain data; one per session.
class StepInProgress {
 public:
  // Begins a step, of which nothing is computed or applied.
  void Begin(uint64_t step);
  // Returns the number of the current step, or of the last one.
  uint64_t number() const { return number_; }
  // Whether the step may have pushed chunks.
  bool begun() const { return number_ < begun_below_; }
  // Every step of this timeline that may have pushed chunks is below this.
  uint64_t begun_below() const { return begun_below_; }
  // Counts a step that other workers have completed as begun.
  void CountAsBegun(uint64_t step);

  void Halt() { halted_ = true; }
  bool halted() const { return halted_; }
  // Whether the worker pushes this computed chunk now. If not, the halt holds the chunk back.
  bool MayPush(const ChunkId& chunk);
  // Ends the halt. Returns the chunks that it held back, for MayPush().
  std::vector<ChunkId> EndHalt();

  // Drops the chunks that a halt holds back.
  void Cancel() { held_back_.clear(); }
  // Another timeline begins, or none: no step of it is begun, and no halt holds.
  void Reset();

  void Computed(BatchOutcome outcome) { outcome_ = std::move(outcome); }
  // Every ps has acknowledged all chunks of the step.
  void Applied() { applied_ = true; }
  bool done() const { return outcome_.has_value() && applied_; }
  // Requires Computed().
  const BatchOutcome& outcome() const { return *outcome_; }
  // Returns the report of the done step, which took `took` in all.
  proto::StepDone Report(Time took) const;

 private:
  uint64_t number_ = 0;
  std::optional<BatchOutcome> outcome_;
  bool applied_ = false;
  uint64_t begun_below_ = 0;
  bool halted_ = false;
  std::vector<ChunkId> held_back_;
};

}  // namespace shoal
