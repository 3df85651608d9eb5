#pragma once

#include <span>

namespace shoal {

// One update of any number of runs of elements: an update rule with all terms computed that depend
// only on the update's number. Thread-safe.
class Update {
 public:
  virtual ~Update() = default;

  // Computes new values from `values` and the gradient, and writes them to `out`. `out` may be
  // `values` itself but must not overlap it otherwise. Slots change in place. `gradient` may be
  // unaligned. The result for an element does not depend on its neighbours, unless the optimizer
  // takes whole variables: then the elements must be all of one variable.
  virtual void Apply(std::span<const float> gradient, std::span<const float> values,
                     std::span<float> out, std::span<float* const> slots) const = 0;
};

}  // namespace shoal
