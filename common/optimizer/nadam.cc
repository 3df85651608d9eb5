// Keras's Nadam (keras/src/optimizers/nadam.py), after Dozat, "Incorporating Nesterov momentum into
// Adam":
//   u_t = beta_1 (1 - 0.96^t / 2),  U_t = u_1 u_2 … u_t,
//   m += (g - m)(1 - beta_1),  v += (g g - v)(1 - beta_2),
//   w -= lr (u_(t+1) m / (1 - U_(t+1)) + (1 - u_t) g / (1 - U_t)) / (sqrt(v / (1 - beta_2^t)) +
//        epsilon).
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct NadamFactors {
  float of_m;  // factor of m, from the learning rate and the corrections
  float of_gradient;
  float of_v;
  float one_minus_beta_1;
  float one_minus_beta_2;
  float epsilon;
  float decay;
};

SHOAL_VECTORIZED
void ApplyNadam(const UnalignedFloat* gradient, const float* values, float* out, float* first,
                float* second, size_t size, NadamFactors factors) {
  const auto [of_m, of_gradient, of_v, one_minus_beta_1, one_minus_beta_2, epsilon, decay] =
      factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float m = first[i] + (g - first[i]) * one_minus_beta_1;
    const float v = second[i] + (g * g - second[i]) * one_minus_beta_2;
    first[i] = m;
    second[i] = v;
    out[i] = value - (of_m * m + of_gradient * g) / (std::sqrt(of_v * v) + epsilon);
  }
}

class Nadam : public Optimizer {
 public:
  explicit Nadam(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.001}),
        beta_1_(options.Number("beta_1", 0.9, {.min = 0, .max = 1, .below_max = true})),
        beta_2_(options.Number("beta_2", 0.999, {.min = 0, .max = 1, .below_max = true})),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})) {
    AddSlot("nadam_m");
    AddSlot("nadam_v");
    products_.push_back(1);
    for (int t = 1; t <= kTerms; ++t) products_.push_back(products_.back() * Factor(t));
  }

 private:
  // From here on 1 - 0.96^t / 2 is 1 in double precision.
  static constexpr int kTerms = 1000;
  static double Factor(double t) { return 1 - 0.5 * std::pow(0.96, t); }

  // U_t. Keras keeps it as a variable of the optimizer; it is a function of t.
  double Product(double t) const {
    return std::pow(beta_1_, t) * products_[static_cast<size_t>(std::min<double>(t, kTerms))];
  }

  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    const auto t = static_cast<double>(step.iteration);
    NadamFactors factors;
    factors.of_m = step.learning_rate * beta_1_ * Factor(t + 1) / (1 - Product(t + 1));
    factors.of_gradient = step.learning_rate * (1 - beta_1_ * Factor(t)) / (1 - Product(t));
    factors.of_v = 1 / (1 - std::pow(beta_2_, t));
    factors.one_minus_beta_1 = 1 - beta_1_;
    factors.one_minus_beta_2 = 1 - beta_2_;
    factors.epsilon = epsilon_;
    factors.decay = step.decay;
    return UpdateOf([factors](const Elements& e) {
      ApplyNadam(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.size, factors);
    });
  }

  const double beta_1_;
  const double beta_2_;
  const double epsilon_;
  std::vector<double> products_;  // of the first t factors
};

}  // namespace

std::unique_ptr<Optimizer> MakeNadam(KerasOptions& options) {
  return std::make_unique<Nadam>(options);
}

}  // namespace shoal
