#pragma once

#include <span>

namespace shoal {

// One update of one run of elements or many: an update rule with all that depends on the number of
// the update alone worked out. Thread-safe.
class Update {
 public:
  virtual ~Update() = default;

  // Computes new values from `values` and the gradient, and writes them to `out`, which may be
  // `values` itself but otherwise does not overlap it. Slots change in place. `gradient` may be
  // unaligned. What becomes of an element does not depend on what lies beside it, unless the
  // optimizer takes whole variables: then these are all elements of one.
  virtual void Apply(std::span<const float> gradient, std::span<const float> values,
                     std::span<float> out, std::span<float* const> slots) const = 0;
};

}  // namespace shoal
