// Keras's Adadelta (keras/src/optimizers/adadelta.py), after Zeiler:
//   a = rho a + (1 - rho) g g,  d = -sqrt(b + epsilon) g / sqrt(a + epsilon),
//   b = rho b + (1 - rho) d d,  w += lr d.
#include <cmath>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct AdadeltaFactors {
  float rate;
  float rho;
  float one_minus_rho;
  float epsilon;
  float decay;
};

SHOAL_VECTORIZED
void ApplyAdadelta(const UnalignedFloat* gradient, const float* values, float* out,
                   float* gradients, float* changes, size_t size, AdadeltaFactors factors) {
  const auto [rate, rho, one_minus_rho, epsilon, decay] = factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float a = rho * gradients[i] + one_minus_rho * (g * g);
    const float change = -(std::sqrt(changes[i] + epsilon) * g / std::sqrt(a + epsilon));
    gradients[i] = a;
    changes[i] = rho * changes[i] + one_minus_rho * (change * change);
    out[i] = value + rate * change;
  }
}

class Adadelta : public Optimizer {
 public:
  explicit Adadelta(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        rho_(options.Number("rho", 0.95, {.min = 0, .max = 1, .below_max = true})),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})) {
    AddSlot("adadelta_gradient");
    AddSlot("adadelta_change");
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    AdadeltaFactors factors;
    factors.rate = step.learning_rate;
    factors.rho = rho_;
    factors.one_minus_rho = 1 - rho_;
    factors.epsilon = epsilon_;
    factors.decay = step.decay;
    return UpdateOf([factors](const Elements& e) {
      ApplyAdadelta(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.size, factors);
    });
  }

  const double rho_;
  const double epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdadelta(KerasOptions& options) {
  return std::make_unique<Adadelta>(options);
}

}  // namespace shoal
