#include "tests/simulation/expected_sums.h"

#include <utility>

#include "tests/simulation/random.h"

namespace shoal {

ExpectedSums::ExpectedSums(uint64_t seed, std::vector<Variable> variables, uint64_t steps)
    : seed_(seed), variables_(std::move(variables)), layout_(variables_) {
  for (const Variable& variable : variables_) {
    first_.push_back(elements_);
    elements_ += ElementCount(variable.shape);
  }
  below_.resize((steps + 1) * elements_, 0);
  for (uint64_t step = 0; step < steps; ++step) {
    float* const from = below_.data() + step * elements_;
    for (size_t v = 0; v < variables_.size(); ++v) {
      const int64_t size = ElementCount(variables_[v].shape);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = first_[v] + i;
        from[elements_ + at] =
            from[at] + (variables_[v].pushed() ? Addend(step, static_cast<int>(v), i) : 0);
      }
    }
  }
}

float ExpectedSums::Addend(uint64_t step, int variable, int64_t element) const {
  const uint64_t number = static_cast<uint64_t>(first_[variable] + element);
  return static_cast<float>(1 + Random(seed_ ^ (step << 20) ^ number).Below(31));
}

int ExpectedSums::Find(const std::string& name) const {
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].name == name) return static_cast<int>(v);
  }
  return -1;
}

}  // namespace shoal
