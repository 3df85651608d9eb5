// Keras's Adamax (keras/src/optimizers/adamax.py):
//   m += (g - m)(1 - beta_1),  u = max(beta_2 u, |g|),
//   w -= lr m / ((1 - beta_1^t)(u + epsilon)).
#include <algorithm>
#include <cmath>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct AdamaxFactors {
  float rate;  // learning rate / (1 - beta_1^t)
  float one_minus_beta_1;
  float beta_2;
  float epsilon;
  float decay;
};

SHOAL_VECTORIZED
void ApplyAdamax(const UnalignedFloat* gradient, const float* values, float* out, float* first,
                 float* largest, size_t size, AdamaxFactors factors) {
  const auto [rate, one_minus_beta_1, beta_2, epsilon, decay] = factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float m = first[i] + (g - first[i]) * one_minus_beta_1;
    const float u = std::max(beta_2 * largest[i], std::abs(g));
    first[i] = m;
    largest[i] = u;
    out[i] = value - rate * m / (u + epsilon);
  }
}

class Adamax : public Optimizer {
 public:
  explicit Adamax(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        beta_1_(options.Number("beta_1", 0.9, {.min = 0, .max = 1, .below_max = true})),
        beta_2_(options.Number("beta_2", 0.999, {.min = 0, .max = 1, .below_max = true})),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})) {
    AddSlot("adamax_m");
    AddSlot("adamax_u");
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    AdamaxFactors factors;
    factors.rate =
        step.learning_rate / (1 - std::pow(beta_1_, static_cast<double>(step.iteration)));
    factors.one_minus_beta_1 = 1 - beta_1_;
    factors.beta_2 = beta_2_;
    factors.epsilon = epsilon_;
    factors.decay = step.decay;
    return UpdateOf([factors](const Elements& e) {
      ApplyAdamax(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.size, factors);
    });
  }

  const double beta_1_;
  const double beta_2_;
  const double epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdamax(KerasOptions& options) {
  return std::make_unique<Adamax>(options);
}

}  // namespace shoal
