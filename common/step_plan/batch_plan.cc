#include "common/step_plan/batch_plan.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace shoal {

BatchPlan::BatchPlan(const Options& options)
    : batches_per_step_(options.batches_per_step),
      // An epoch of n examples has ceil(ceil(n / b) / h) = ceil(n / (b h)) steps.
      steps_(options.examples, options.batch_size * options.batches_per_step, options.epochs,
             options.steps),
      batches_per_epoch_((options.examples - 1) / options.batch_size + 1),
      batches_(options.examples, options.batch_size, options.epochs,
               options.steps == 0 ? 0 : FirstOf(options.steps)) {
  SHOAL_CHECK(options.batches_per_step <= std::numeric_limits<uint64_t>::max() / options.batch_size,
              "batch_size=", options.batch_size, ", batches_per_step=", options.batches_per_step);
}

uint64_t BatchPlan::FirstOf(uint64_t step) const {
  const uint64_t in_epoch = step % steps_.steps_per_epoch();
  return steps_.EpochOf(step) * batches_per_epoch_ + in_epoch * batches_per_step_;
}

BatchPlan::Block BatchPlan::BatchesOf(uint64_t step) const {
  const uint64_t first = FirstOf(step);
  const uint64_t left_of_epoch = batches_per_epoch_ - first % batches_per_epoch_;
  return {.first = first, .count = std::min(batches_per_step_, left_of_epoch)};
}

}  // namespace shoal
