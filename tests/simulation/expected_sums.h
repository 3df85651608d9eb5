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

// A moving average whose momentum is 1 - 1 / kSampleScale keeps its value (in float32 that is 1)
// and adds a sample divided by this, exactly.
inline constexpr float kSampleScale = 1 << 30;

// The largest integer that a step adds, where it is in no round; the smallest is 1.
inline constexpr float kMaxAddend = 31;

// What variables must be: every step adds to each element of each variable a small integer that
// depends on the seed, the step and the element alone. So the sum of a set of steps does not depend
// on their order, floats hold it exactly, and a step that is missing or there twice shows. The same
// sums are in the values (SGD without momentum, learning rate 1) or in the slot (momentum 1), and
// in the values of moving averages, whose samples are kSampleScale times as large. What is frozen
// stays at zero. The sums of squares are in another slot (Adagrad), whatever becomes of the values.
//
// In synchronous rounds what steps push is of either sign and of very different sizes, so that the
// sum of a round shows the order in which it was made; what the variables must be then is computed
// here one round after the other, with no other code than this.
class ExpectedSums {
 public:
  struct Options {
    uint64_t seed = 0;
    std::vector<Variable> variables;
    uint64_t steps = 0;
    std::optional<RoundPlan> rounds;
    bool of_squares = false;  // of what the optimizer updates
    // Of so many steps about one comes to nothing, as its gradient overflows; 0: none.
    uint64_t overflows_one_in = 0;
    // Of which a sample is: it is taken in as that of so many batches.
    uint64_t batches_per_step = 1;
  };
  explicit ExpectedSums(Options options);

  const std::vector<Variable>& variables() const { return variables_; }
  const ModelLayout& layout() const { return layout_; }
  // Whether step `step` adds nothing, whoever computes it, and nothing is what is pushed.
  bool Overflows(uint64_t step) const;
  // What step `step` adds to element `element` of variable `variable`; in a round, to the sum of
  // which the mean is added.
  float Addend(uint64_t step, int variable, int64_t element) const {
    if (Overflows(step)) return 0;
    const float drawn = Drawn(step, variable, element);
    return of_squares_ && variables_[variable].has_slots() ? drawn * drawn : drawn;
  }
  // What step `step` pushes for it.
  float Pushed(uint64_t step, int variable, int64_t element) const {
    const bool averages = variables_[variable].rule == UpdateRule::kMovingAverage;
    return Drawn(step, variable, element) * (averages ? sample_scale_ : -1);
  }
  // Sum of the steps below `end`; within a round there is none, and it is NaN.
  float Below(uint64_t end, int variable, int64_t element) const {
    return below_[end * elements_ + first_[variable] + element];
  }
  // Index of the variable of this name; -1 when there is none.
  int Find(const std::string& name) const;

 private:
  float Drawn(uint64_t step, int variable, int64_t element) const;
  // What is added when the steps of a round are in, the first of which is `first`.
  float Mean(const Round& round, int variable, int64_t element) const;

  const uint64_t seed_;
  const bool in_rounds_;
  const bool of_squares_;
  const uint64_t overflows_one_in_;
  const float sample_scale_;
  const std::vector<Variable> variables_;
  const ModelLayout layout_;
  std::vector<int64_t> first_;  // number of the variable's first element
  int64_t elements_ = 0;
  std::vector<float> below_;  // for each number of steps, each element
};

}  // namespace shoal
