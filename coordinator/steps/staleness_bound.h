#pragma once

#include <cstdint>
#include <map>

#include "coordinator/steps/lease_rule.h"

namespace shoal {

// Bounded staleness (docs/strategies.md): no gradient is applied to a chunk that has had more than
// `max` updates since the worker pulled it.
//
// A step is out from its first lease until it is done. A worker pulls after its step was leased.
// Updates in between can only come from the steps that were out at the lease, and from those leased
// later. A limit on the distance to the oldest step that is not done would not be enough: steps
// below a step may be done after its pull, as well as steps above it.
class StalenessBound : public LeaseRule {
 public:
  explicit StalenessBound(uint64_t max) : max_(max) {}

  uint64_t Span() const override { return max_ + 1; }
  bool MayLease(const Candidate& candidate) const override;
  void Leased(uint64_t step) override;
  void Done(uint64_t step) override;

 private:
  const uint64_t max_;
  uint64_t begun_ = 0;                // steps that were ever out
  uint64_t done_ = 0;                 // those of them that are done
  uint64_t leases_ = 0;               // leases so far, repeated ones too
  std::map<uint64_t, uint64_t> out_;  // step -> number of its newest lease
  // Number of a lease -> value of done_ at that lease. The first entry has the smallest value,
  // because its lease is the oldest.
  std::map<uint64_t, uint64_t> done_before_;
};

}  // namespace shoal
