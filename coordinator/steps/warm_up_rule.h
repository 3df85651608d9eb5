#pragma once

#include <cstdint>
#include <limits>
#include <set>

#include "coordinator/steps/lease_rule.h"

namespace shoal {

// Warm-up by workers (docs/strategies.md): limits the steps that are out. The limit grows from one
// at the first step to the number of workers at step `warmup_steps`. After that there is no limit.
// A step is out from its first lease until it is done.
class WarmUpRule : public LeaseRule {
 public:
  WarmUpRule(uint64_t warmup_steps, uint64_t workers)
      : warmup_steps_(warmup_steps), workers_(workers) {}

  uint64_t Span() const override { return std::numeric_limits<uint64_t>::max(); }
  // A step that came back is out already.
  bool MayLease(const Candidate& candidate) const override {
    return candidate.came_back || candidate.step >= warmup_steps_ ||
           out_.size() < 1 + candidate.step * (workers_ - 1) / warmup_steps_;
  }
  void Leased(uint64_t step) override {
    if (step < warmup_steps_) out_.insert(step);
  }
  void Done(uint64_t step) override { out_.erase(step); }

 private:
  const uint64_t warmup_steps_;
  const uint64_t workers_;
  std::set<uint64_t> out_;
};

}  // namespace shoal
