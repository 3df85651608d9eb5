#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "coordinator/steps/step_dispatcher.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Who reported the steps of a timeline that are done, until all ps have been asked for them
// (section 5 of the protocol): what is done is applied on every ps, or somebody says what is not
// so. Plain state; not thread-safe.
class StepReports {
 public:
  void Add(uint64_t step, StepDispatcher::WorkerKey reporter);
  // All ps have applied all steps below.
  void Confirm(uint64_t below) {
    reporters_.erase(reporters_.begin(), reporters_.lower_bound(below));
  }
  void Clear() { reporters_.clear(); }

  // What a ps lacks of the steps below `done`, which had all been reported as done when it was
  // asked.
  struct Lack {
    bool untold = false;          // more than `window_steps`: which these are it does not tell
    std::vector<uint64_t> steps;  // else these, ascending
    // Who reported some of them, as far as that is known, and one that each reported.
    std::map<StepDispatcher::WorkerKey, uint64_t> reporters;

    bool any() const { return untold || !steps.empty(); }
  };
  Lack LackOf(const proto::Claimed& claimed, uint64_t done, uint64_t window_steps) const;

 private:
  std::map<uint64_t, StepDispatcher::WorkerKey> reporters_;  // by step
};

}  // namespace shoal
