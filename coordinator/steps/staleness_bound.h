#pragma once

#include <cstdint>
#include <map>

#include "coordinator/steps/lease_rule.h"

namespace shoal {

// Bounded staleness (docs/strategies.md): no gradient is applied to a chunk that has had more than
// `most` updates since the worker pulled it. A worker pulls after its step was leased, so what may
// come in between are the steps that were out at that moment and those leased later; a step is out
// from its first lease until it is done, whoever has it. That no step be leased more than `most`
// beyond the oldest that is not done would not do: as many may be done before a step as after it.
class StalenessBound : public LeaseRule {
 public:
  explicit StalenessBound(uint64_t most) : most_(most) {}

  uint64_t Span() const override { return most_ + 1; }
  bool MayLease(const Candidate& candidate) const override;
  void Leased(uint64_t step) override;
  void Done(uint64_t step) override;

 private:
  const uint64_t most_;
  uint64_t begun_ = 0;                // steps that were ever out
  uint64_t done_ = 0;                 // and are no more
  uint64_t leases_ = 0;               // also of steps that came back
  std::map<uint64_t, uint64_t> out_;  // step -> number of its newest lease
  // By that number, the steps that were done before. The first of those that are left is the
  // smallest: it was made first.
  std::map<uint64_t, uint64_t> done_before_;
};

}  // namespace shoal
