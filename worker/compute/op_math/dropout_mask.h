#pragma once

#include <cstdint>

#include "worker/compute/op_math/host_device.h"
#include "worker/compute/op_math/step_random.h"
#include "worker/compute/program/run_context.h"

namespace shoal {

// The elements that one dropout layer keeps in one step.
class DropoutMask {
 public:
  SHOAL_HOST_DEVICE DropoutMask(const RunContext& context, uint64_t layer_seed, double rate)
      : random_(context, layer_seed),
        dropped_below_(static_cast<uint64_t>(rate * 4294967296.0)),
        scale_(rate < 1 ? 1 / (1 - rate) : 0) {}

  SHOAL_HOST_DEVICE bool Keeps(uint64_t element) const {
    return random_.Bits(element) >= dropped_below_;
  }
  // The factor of element i: 0, or 1 / (1 - rate).
  template <typename Scalar>
  SHOAL_HOST_DEVICE Scalar Factor(uint64_t element) const {
    return Keeps(element) ? static_cast<Scalar>(scale_) : Scalar(0);
  }

 private:
  const StepRandom random_;
  const uint64_t dropped_below_;  // element dropped if its 32 random bits are below this
  const double scale_;
};

}  // namespace shoal
