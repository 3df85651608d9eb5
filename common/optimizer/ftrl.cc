// Keras's Ftrl (keras/src/optimizers/ftrl.py), after McMahan et al., "Ad click prediction: a view
// from the trenches". With p = -learning_rate_power, l1 and l2 the strengths, and l2' = l2 +
// beta / (2 lr):
//   a' = a + g g,
//   z += g + 2 l2_shrinkage w - (a'^p - a^p) / lr w,
//   w = (clip(z, -l1, l1) - z) / (a'^p / lr + 2 l2'),  a = a'.
#include <algorithm>
#include <cmath>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct FtrlFactors {
  float power;  // p
  float one_over_rate;
  float l1;
  float twice_l2;  // 2 l2'
  float twice_shrinkage;
  float decay;
};

// One element; `before` and `after` are a^p and a'^p.
inline float Next(float g, float value, float before, float after, float* linear,
                  const FtrlFactors& factors) {
  const float z = *linear + ((g + factors.twice_shrinkage * value) -
                             (after - before) * factors.one_over_rate * value);
  *linear = z;
  const float clipped = std::min(std::max(z, -factors.l1), factors.l1);
  return (clipped - z) / (after * factors.one_over_rate + factors.twice_l2);
}

// For the usual power, 1/2.
SHOAL_VECTORIZED
void ApplyRoot(const UnalignedFloat* gradient, const float* values, float* out, float* accumulator,
               float* linear, size_t size, FtrlFactors factors) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * factors.decay;
    const float before = accumulator[i], sum = before + g * g;
    accumulator[i] = sum;
    out[i] = Next(g, value, std::sqrt(before), std::sqrt(sum), &linear[i], factors);
  }
}

void ApplyPower(const UnalignedFloat* gradient, const float* values, float* out, float* accumulator,
                float* linear, size_t size, FtrlFactors factors) {
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * factors.decay;
    const float before = accumulator[i], sum = before + g * g;
    accumulator[i] = sum;
    out[i] = Next(g, value, std::pow(before, factors.power), std::pow(sum, factors.power),
                  &linear[i], factors);
  }
}

class Ftrl : public Optimizer {
 public:
  explicit Ftrl(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        power_(-options.Number("learning_rate_power", -0.5, {.min = -10, .max = 0})),
        l1_(options.Number("l1_regularization_strength", 0, kStrength)),
        l2_(options.Number("l2_regularization_strength", 0, kStrength)),
        shrinkage_(options.Number("l2_shrinkage_regularization_strength", 0, kStrength)),
        beta_(options.Number("beta", 0, kStrength)) {
    AddSlot("ftrl_accumulator",
            options.Number("initial_accumulator_value", 0.1, {.min = 0, .max = 1000}));
    AddSlot("ftrl_linear");
    SetRecomputesValues();
  }

 private:
  static constexpr NumberRange kStrength = {.min = 0, .max = 1000};

  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    FtrlFactors factors;
    factors.power = power_;
    factors.one_over_rate = 1 / step.learning_rate;
    factors.l1 = l1_;
    factors.twice_l2 = 2 * l2_ + beta_ / step.learning_rate;
    factors.twice_shrinkage = 2 * shrinkage_;
    factors.decay = step.decay;
    return UpdateOf([factors, apply = power_ == 0.5 ? ApplyRoot : ApplyPower](const Elements& e) {
      apply(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.size, factors);
    });
  }

  const double power_;
  const double l1_;
  const double l2_;
  const double shrinkage_;
  const double beta_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeFtrl(KerasOptions& options) {
  return std::make_unique<Ftrl>(options);
}

}  // namespace shoal
