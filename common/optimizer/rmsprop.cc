// Keras's RMSprop (keras/src/optimizers/rmsprop.py):
//   v = rho v + (1 - rho) g g,  d = lr g / sqrt(v + epsilon),  w -= d.
// Centered: a = rho a + (1 - rho) g, and v - a a replaces v in d. With momentum:
//   m = momentum m + d,  w -= m.
#include <cmath>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct RmspropFactors {
  float rate;
  float rho;
  float one_minus_rho;
  float momentum;
  float epsilon;
  float decay;
};

// `averages` and `momenta` are null if unused; the compiler makes a loop for each case.
SHOAL_VECTORIZED
void ApplyRmsprop(const UnalignedFloat* gradient, const float* values, float* out,
                  float* velocities, float* averages, float* momenta, size_t size,
                  RmspropFactors factors) {
  const auto [rate, rho, one_minus_rho, momentum, epsilon, decay] = factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    float square = rho * velocities[i] + one_minus_rho * (g * g);
    velocities[i] = square;
    if (averages != nullptr) {
      const float average = rho * averages[i] + one_minus_rho * g;
      averages[i] = average;
      square = square - average * average;
    }
    float change = rate * g / std::sqrt(square + epsilon);
    if (momenta != nullptr) {
      change = momentum * momenta[i] + change;
      momenta[i] = change;
    }
    out[i] = value - change;
  }
}

class Rmsprop : public Optimizer {
 public:
  explicit Rmsprop(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        rho_(options.Number("rho", 0.9, {.min = 0, .max = 1, .below_max = true})),
        momentum_(options.Number("momentum", 0, {.min = 0, .max = 1})),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})),
        centered_(options.Flag("centered", false)) {
    AddSlot("rmsprop_velocity");
    if (momentum_ > 0) AddSlot("rmsprop_momentum");
    if (centered_) AddSlot("rmsprop_average");
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    RmspropFactors factors;
    factors.rate = step.learning_rate;
    factors.rho = rho_;
    factors.one_minus_rho = 1 - rho_;
    factors.momentum = momentum_;
    factors.epsilon = epsilon_;
    factors.decay = step.decay;
    return UpdateOf(
        [factors, with_momentum = momentum_ > 0, centered = centered_](const Elements& e) {
          float* const* next = e.slots + 1;
          float* const momenta = with_momentum ? *next++ : nullptr;
          float* const averages = centered ? *next : nullptr;
          ApplyRmsprop(e.gradient, e.values, e.out, e.slots[0], averages, momenta, e.size, factors);
        });
  }

  const double rho_;
  const double momentum_;
  const double epsilon_;
  const bool centered_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeRMSprop(KerasOptions& options) {
  return std::make_unique<Rmsprop>(options);
}

}  // namespace shoal
