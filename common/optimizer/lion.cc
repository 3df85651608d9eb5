// Keras's Lion (keras/src/optimizers/lion.py), after Chen et al., "Symbolic discovery of
// optimization algorithms":
//   w -= lr sign(beta_1 m + (1 - beta_1) g),  m = beta_2 m + (1 - beta_2) g.
#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct LionFactors {
  float rate;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float one_minus_beta_2;
  float decay;
};

SHOAL_VECTORIZED
void ApplyLion(const UnalignedFloat* gradient, const float* values, float* out, float* momentum,
               size_t size, LionFactors factors) {
  const auto [rate, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2, decay] = factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float direction = beta_1 * momentum[i] + one_minus_beta_1 * g;
    momentum[i] = beta_2 * momentum[i] + one_minus_beta_2 * g;
    // The sign of zero and of not-a-number is the number itself.
    const float sign = direction > 0 ? 1.0f : (direction < 0 ? -1.0f : direction);
    out[i] = value - rate * sign;
  }
}

class Lion : public Optimizer {
 public:
  explicit Lion(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        beta_1_(options.Number("beta_1", 0.9, {.min = 0, .max = 1, .above_min = true})),
        beta_2_(options.Number("beta_2", 0.99, {.min = 0, .max = 1})) {
    AddSlot("lion_m");
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    LionFactors factors;
    factors.rate = step.learning_rate;
    factors.beta_1 = beta_1_;
    factors.one_minus_beta_1 = 1 - beta_1_;
    factors.beta_2 = beta_2_;
    factors.one_minus_beta_2 = 1 - beta_2_;
    factors.decay = step.decay;
    return UpdateOf([factors](const Elements& e) {
      ApplyLion(e.gradient, e.values, e.out, e.slots[0], e.size, factors);
    });
  }

  const double beta_1_;
  const double beta_2_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLion(KerasOptions& options) {
  return std::make_unique<Lion>(options);
}

}  // namespace shoal
