#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/steps/step_dispatcher.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// The reporters of the done steps of a timeline, until all ps have confirmed them (section 5 of the
// protocol). A done step is applied on every ps; otherwise its report was false. Plain state; not
// thread-safe.
class StepReports {
 public:
  void Add(uint64_t step, StepDispatcher::WorkerKey reporter);
  // All ps have applied all steps below.
  void Confirm(uint64_t below) {
    reporters_.erase(reporters_.begin(), reporters_.lower_bound(below));
  }
  void Clear() { reporters_.clear(); }

  // The steps below `done` that a ps has not applied. All of them had been reported as done when
  // the coordinator asked the ps.
  struct Lack {
    bool unnamed = false;         // the gap exceeds `window_steps`: the ps cannot name the steps
    std::vector<uint64_t> steps;  // otherwise the steps, ascending
    // The known reporters of missing steps, each with one step that it reported.
    std::map<StepDispatcher::WorkerKey, uint64_t> reporters;

    bool any() const { return unnamed || !steps.empty(); }
  };
  Lack LackOf(const proto::Claimed& claimed, uint64_t done, uint64_t window_steps) const;

 private:
  std::map<uint64_t, StepDispatcher::WorkerKey> reporters_;  // by step
};

}  // namespace shoal
