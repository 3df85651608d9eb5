#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/job/optimizer_slots.h"

namespace shoal {

// One update of one run of elements or many: an update rule with all that depends on the number of
// the update alone worked out. Thread-safe.
class Update {
 public:
  virtual ~Update() = default;

  // Computes new values from `values` and the gradient, and writes them to `out`, which may be
  // `values` itself but otherwise does not overlap it. Slots change in place. `gradient` may be
  // unaligned. Formulas are Keras's.
  virtual void Apply(std::span<const float> gradient, std::span<const float> values,
                     std::span<float> out, std::span<float* const> slots) const = 0;
};

// An update rule, without state: that lies in slots, which the caller keeps, each as long as the
// values. Thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // "adam_m", "adam_v": the prefixes under which slots are stored; also their number.
  const std::vector<std::string>& slot_names() const { return slot_names_; }
  // First value of every element of a slot.
  virtual float initial_slot_value(int slot) const = 0;

  // Update number `iteration`, 1 for the first; must not outlive the optimizer.
  virtual std::unique_ptr<const Update> Prepare(uint64_t iteration) const = 0;

 protected:
  explicit Optimizer(const Job::Optimizer& options) : slot_names_(OptimizerSlotNames(options)) {}

 private:
  const std::vector<std::string> slot_names_;
};

std::unique_ptr<const Optimizer> MakeOptimizer(const Job::Optimizer& options);

}  // namespace shoal
