// Keras's Adagrad (keras/src/optimizers/adagrad.py):
//   a += g g,  w -= lr g / sqrt(a + epsilon).
#include <cmath>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

SHOAL_VECTORIZED
void ApplyAdagrad(const UnalignedFloat* gradient, const float* values, float* out,
                  float* accumulator, size_t size, float rate, float epsilon, float decay) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float sum = accumulator[i] + g * g;
    accumulator[i] = sum;
    out[i] = value - rate * g / std::sqrt(sum + epsilon);
  }
}

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})) {
    AddSlot("adagrad_accumulator",
            options.Number("initial_accumulator_value", 0.1, {.min = 0, .max = 1000}));
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    const float rate = step.learning_rate, epsilon = epsilon_, decay = step.decay;
    return UpdateOf([=](const Elements& e) {
      ApplyAdagrad(e.gradient, e.values, e.out, e.slots[0], e.size, rate, epsilon, decay);
    });
  }

  const double epsilon_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdagrad(KerasOptions& options) {
  return std::make_unique<Adagrad>(options);
}

}  // namespace shoal
