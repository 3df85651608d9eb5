#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// An update rule: a stateless function on spans. Its state lies in slots, which the caller keeps,
// each as long as the values. Thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // "adam_m", "adam_v": the prefixes under which slots are stored; also their number.
  virtual const std::vector<std::string>& slot_names() const = 0;
  // First value of every element of a slot.
  virtual float initial_slot_value(int slot) const = 0;

  // Computes the values after update number `iteration` (1 for the first) from `values` and the
  // gradient, and writes them to `out`, which may be `values` itself but otherwise does not overlap
  // it. Slots change in place. `gradient` may be unaligned. Formulas are Keras's.
  virtual void Apply(std::span<const float> gradient, uint64_t iteration,
                     std::span<const float> values, std::span<float> out,
                     std::span<float* const> slots) const = 0;
};

std::unique_ptr<const Optimizer> MakeOptimizer(const Job::Optimizer& options);

}  // namespace shoal
