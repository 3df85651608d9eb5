#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/variable.h"
#include "common/step_plan/round_plan.h"

namespace shoal {

// A moving average with the momentum 1 - 1 / kSampleScale keeps its value, because that is 1 in
// float32. It adds exactly a sample divided by kSampleScale.
inline constexpr float kSampleScale = 1 << 30;

// The largest integer that a step adds outside a round; the smallest is 1.
inline constexpr float kMaxAddend = 31;

// The expected values of variables. Every step adds a small integer to each element of each
// variable. It depends only on the seed, the step and the element. So the sum of a set of steps
// does not depend on their order, floats hold it exactly, and a missing or repeated step changes
// it.
//
// The same sums are in the values (SGD without momentum, learning rate 1) or in the slot (momentum
// 1), and in the values of moving averages, whose samples are kSampleScale times as large. Frozen
// variables stay at zero. The sums of squares are in another slot (Adagrad), whatever happens to
// the values.
//
// In synchronous rounds, the steps push values of either sign and of very different sizes, so that
// the sum of a round shows its order of addition. This class computes the expected values round by
// round, with its own code only.
class ExpectedSums {
 public:
  struct Options {
    uint64_t seed = 0;
    std::vector<Variable> variables;
    uint64_t steps = 0;
    std::optional<RoundPlan> rounds;
    bool of_squares = false;  // of the variables that the optimizer updates
    // About one in this many steps adds nothing because its gradient overflows; 0: none.
    uint64_t overflows_one_in = 0;
    // A sample is taken as that of this many batches.
    uint64_t batches_per_step = 1;
  };
  explicit ExpectedSums(Options options);

  const std::vector<Variable>& variables() const { return variables_; }
  const ModelLayout& layout() const { return layout_; }
  // Returns whether `step` overflows: it adds nothing on any worker, and the worker pushes a skip.
  bool Overflows(uint64_t step) const;
  // Returns the addend of `step` for `element` of `variable`. In a round, it adds to the sum from
  // which the mean is taken.
  float Addend(uint64_t step, int variable, int64_t element) const {
    if (Overflows(step)) return 0;
    const float drawn = Drawn(step, variable, element);
    return of_squares_ && variables_[variable].has_slots() ? drawn * drawn : drawn;
  }
  // Returns the value that `step` pushes for the element.
  float Pushed(uint64_t step, int variable, int64_t element) const {
    const bool averages = variables_[variable].rule == UpdateRule::kMovingAverage;
    return Drawn(step, variable, element) * (averages ? sample_scale_ : -1);
  }
  // Returns the sum of the steps below `end`; NaN if `end` is within a round.
  float Below(uint64_t end, int variable, int64_t element) const {
    return below_[end * elements_ + first_[variable] + element];
  }
  // Returns the index of the variable with this name, or -1.
  int Find(const std::string& name) const;

 private:
  float Drawn(uint64_t step, int variable, int64_t element) const;
  // Returns the addend of the whole round.
  float Mean(const Round& round, int variable, int64_t element) const;

  const uint64_t seed_;
  const bool in_rounds_;
  const bool of_squares_;
  const uint64_t overflows_one_in_;
  const float sample_scale_;
  const std::vector<Variable> variables_;
  const ModelLayout layout_;
  std::vector<int64_t> first_;  // number of each variable's first element
  int64_t elements_ = 0;
  std::vector<float> below_;  // for each number of steps and each element
};

}  // namespace shoal
