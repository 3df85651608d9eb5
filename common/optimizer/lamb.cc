// Keras's Lamb (keras/src/optimizers/lamb.py), after You et al., "Large Batch Optimization for Deep
// Learning":
//   m += (g - m)(1 - beta_1),  v += (g g - v)(1 - beta_2),
//   u = m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon),
//   w -= lr |w| / |u| u.
// The norms cover the whole variable, after its decay. Their ratio is 1 if one of them is 0.
#include <algorithm>
#include <cmath>

#include "common/optimizer/loop_update.h"
#include "common/optimizer/sum_of_squares.h"

namespace shoal {
namespace {

struct LambFactors {
  float rate;
  float one_minus_beta_1;
  float one_minus_beta_2;
  float first_correction;   // 1 - beta_1^t
  float second_correction;  // 1 - beta_2^t
  float epsilon;
  float decay;
};

inline float StepOf(float m, float v, const LambFactors& factors) {
  return m / factors.first_correction /
         (std::sqrt(v / factors.second_correction) + factors.epsilon);
}

// Updates the slots, and writes the decayed values and the steps.
SHOAL_VECTORIZED
void MoveSlots(const UnalignedFloat* gradient, const float* values, float* out, float* first,
               float* second, float* steps, size_t size, LambFactors factors) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float m = first[i] + (g - first[i]) * factors.one_minus_beta_1;
    const float v = second[i] + (g * g - second[i]) * factors.one_minus_beta_2;
    first[i] = m;
    second[i] = v;
    steps[i] = StepOf(m, v, factors);
    out[i] = values[i] - values[i] * factors.decay;
  }
}

SHOAL_VECTORIZED
void TakeSteps(const float* first, const float* second, float* out, size_t size, float rate,
               LambFactors factors) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) out[i] -= rate * StepOf(first[i], second[i], factors);
}

// Goes over the variable twice: the second pass recomputes the steps from the slots.
void ApplyLamb(const Elements& e, const LambFactors& factors) {
  constexpr size_t kBlock = 1024;
  float steps[kBlock];
  float* const first = e.slots[0];
  float* const second = e.slots[1];
  double squares_of_values = 0, squares_of_steps = 0;
  for (size_t begin = 0; begin < e.size; begin += kBlock) {
    const size_t size = std::min(kBlock, e.size - begin);
    MoveSlots(e.gradient + begin, e.values + begin, e.out + begin, first + begin, second + begin,
              steps, size, factors);
    squares_of_values += SumOfSquares(e.out + begin, size);
    squares_of_steps += SumOfSquares(steps, size);
  }
  const bool both = squares_of_values > 0 && squares_of_steps > 0;
  const double ratio = both ? std::sqrt(squares_of_values) / std::sqrt(squares_of_steps) : 1;
  TakeSteps(first, second, e.out, e.size, static_cast<float>(ratio * factors.rate), factors);
}

class Lamb : public Optimizer {
 public:
  explicit Lamb(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        beta_1_(options.Number("beta_1", 0.9, {.min = 0, .max = 1, .below_max = true})),
        beta_2_(options.Number("beta_2", 0.999, {.min = 0, .max = 1, .below_max = true})),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})) {
    AddSlot("lamb_m");
    AddSlot("lamb_v");
    TakeWholeVariables();
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    const auto t = static_cast<double>(step.iteration);
    LambFactors factors;
    factors.rate = step.learning_rate;
    factors.one_minus_beta_1 = 1 - beta_1_;
    factors.one_minus_beta_2 = 1 - beta_2_;
    factors.first_correction = 1 - std::pow(beta_1_, t);
    factors.second_correction = 1 - std::pow(beta_2_, t);
    factors.epsilon = epsilon_;
    factors.decay = step.decay;
    return UpdateOf([factors](const Elements& e) { ApplyLamb(e, factors); });
  }

  const double beta_1_;
  const double beta_2_;
  const double epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLamb(KerasOptions& options) {
  return std::make_unique<Lamb>(options);
}

}  // namespace shoal
