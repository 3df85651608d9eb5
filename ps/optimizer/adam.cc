#include "ps/optimizer/adam.h"

#include <cmath>

#include "ps/optimizer/vectorize.h"

namespace shoal {
namespace {

struct Factors {
  float alpha;
  float one_minus_beta_1;
  float one_minus_beta_2;
  float epsilon;
  float decay;
};

SHOAL_VECTORIZE
void ApplyAdam(const UnalignedFloat* gradient, const float* values, float* out, float* first,
               float* second, size_t size, Factors factors) {
  const auto [alpha, one_minus_beta_1, one_minus_beta_2, epsilon, decay] = factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float m = first[i] + (g - first[i]) * one_minus_beta_1;
    const float v = second[i] + (g * g - second[i]) * one_minus_beta_2;
    first[i] = m;
    second[i] = v;
    out[i] = value - alpha * m / (std::sqrt(v) + epsilon);
  }
}

class AdamUpdate : public Update {
 public:
  explicit AdamUpdate(const Factors& factors) : factors_(factors) {}

  void Apply(std::span<const float> gradient, std::span<const float> values, std::span<float> out,
             std::span<float* const> slots) const override {
    ApplyAdam(reinterpret_cast<const UnalignedFloat*>(gradient.data()), values.data(), out.data(),
              slots[0], slots[1], out.size(), factors_);
  }

 private:
  const Factors factors_;
};

}  // namespace

std::unique_ptr<const Update> Adam::Prepare(uint64_t iteration) const {
  const double t = static_cast<double>(iteration);
  Factors factors;
  factors.alpha = options_.learning_rate * std::sqrt(1 - std::pow(options_.beta_2, t)) /
                  (1 - std::pow(options_.beta_1, t));
  factors.one_minus_beta_1 = 1 - options_.beta_1;
  factors.one_minus_beta_2 = 1 - options_.beta_2;
  factors.epsilon = options_.epsilon;
  factors.decay = options_.learning_rate * options_.weight_decay;
  return std::make_unique<AdamUpdate>(factors);
}

}  // namespace shoal
