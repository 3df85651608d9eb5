#include "tests/simulation/expected_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/simulation/random.h"

namespace shoal {

ExpectedSums::ExpectedSums(Options options)
    : seed_(options.seed),
      in_rounds_(options.rounds.has_value()),
      of_squares_(options.of_squares),
      overflows_one_in_(options.overflows_one_in),
      sample_scale_(kSampleScale / static_cast<float>(options.batches_per_step)),
      variables_(std::move(options.variables)),
      layout_(variables_) {
  const uint64_t steps = options.steps;
  for (const Variable& variable : variables_) {
    first_.push_back(elements_);
    elements_ += ElementCount(variable.shape);
  }
  below_.resize((steps + 1) * elements_, std::numeric_limits<float>::quiet_NaN());
  std::fill_n(below_.begin(), elements_, 0.0f);
  for (uint64_t first = 0; first < steps;) {
    const Round round = in_rounds_ ? options.rounds->Of(first) : Round{.first = first, .count = 1};
    const float* const from = below_.data() + first * elements_;
    float* const to = below_.data() + round.end() * elements_;
    for (size_t v = 0; v < variables_.size(); ++v) {
      const int64_t size = ElementCount(variables_[v].shape);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = first_[v] + i;
        to[at] = from[at] + (variables_[v].pushed() ? Mean(round, static_cast<int>(v), i) : 0);
      }
    }
    first = round.end();
  }
}

float ExpectedSums::Mean(const Round& round, int variable, int64_t element) const {
  float sum = Addend(round.first, variable, element);
  for (uint64_t step = round.first + 1; step < round.end(); ++step)
    sum += Addend(step, variable, element);
  return round.count == 1 ? sum : sum / static_cast<float>(round.count);
}

bool ExpectedSums::Overflows(uint64_t step) const {
  return overflows_one_in_ > 0 &&
         Random(seed_ * 0xd1342543de82ef95 + step).OneIn(overflows_one_in_);
}

float ExpectedSums::Drawn(uint64_t step, int variable, int64_t element) const {
  const uint64_t number = static_cast<uint64_t>(first_[variable] + element);
  Random random(seed_ ^ (step << 20) ^ number);
  const auto addend = static_cast<float>(1 + random.Below(static_cast<uint64_t>(kMaxAddend)));
  if (!in_rounds_) return addend;
  const auto exponent = static_cast<int>(random.Below(25));
  return std::ldexp(random.Coin() ? addend : -addend, exponent);
}

int ExpectedSums::Find(const std::string& name) const {
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].name == name) return static_cast<int>(v);
  }
  return -1;
}

}  // namespace shoal
