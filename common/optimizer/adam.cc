// Keras's Adam and AdamW (keras/src/optimizers/adam.py, adamw.py):
//   m += (g - m)(1 - beta_1),  v += (g g - v)(1 - beta_2),
//   w -= alpha m / (sqrt(v) + epsilon)  with  alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t).
// With amsgrad the largest v so far replaces v. AdamW differs only in its default of weight_decay.
#include <algorithm>
#include <cmath>

#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct AdamFactors {
  float alpha;
  float one_minus_beta_1;
  float one_minus_beta_2;
  float epsilon;
  float decay;
};

SHOAL_VECTORIZED
void ApplyAdam(const UnalignedFloat* gradient, const float* values, float* out, float* first,
               float* second, size_t size, AdamFactors factors) {
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

SHOAL_VECTORIZED
void ApplyAmsgrad(const UnalignedFloat* gradient, const float* values, float* out, float* first,
                  float* second, float* largest, size_t size, AdamFactors factors) {
  const auto [alpha, one_minus_beta_1, one_minus_beta_2, epsilon, decay] = factors;
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * decay;
    const float m = first[i] + (g - first[i]) * one_minus_beta_1;
    const float v = second[i] + (g * g - second[i]) * one_minus_beta_2;
    const float most = std::max(largest[i], v);
    first[i] = m;
    second[i] = v;
    largest[i] = most;
    out[i] = value - alpha * m / (std::sqrt(most) + epsilon);
  }
}

SHOAL_VECTORIZED
void LookAhead(const float* values, float* out, const float* first, const float* second,
               size_t size, float alpha, float epsilon) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i)
    out[i] = values[i] - alpha * first[i] / (std::sqrt(second[i]) + epsilon);
}

class Adam : public Optimizer {
 public:
  Adam(KerasOptions& options, double weight_decay)
      : Optimizer(options, {.learning_rate = 0.001, .weight_decay = weight_decay}),
        beta_1_(options.Number("beta_1", 0.9, {.min = 0, .max = 1, .below_max = true})),
        beta_2_(options.Number("beta_2", 0.999, {.min = 0, .max = 1, .below_max = true})),
        epsilon_(options.Number("epsilon", 1e-7, {.min = 0, .max = 1, .above_min = true})),
        amsgrad_(options.Flag("amsgrad", false)) {
    AddSlot("adam_m");
    AddSlot("adam_v");
    if (amsgrad_) AddSlot("adam_vhat");
  }

  std::unique_ptr<const Update> PrepareAhead(uint64_t iteration, double more) const override {
    if (iteration == 0) return nullptr;  // no update yet
    const auto alpha = static_cast<float>(more * Alpha(iteration, LearningRate(iteration)));
    const auto epsilon = static_cast<float>(epsilon_);
    const size_t second = amsgrad_ ? 2 : 1;
    return UpdateOf([=](const Elements& e) {
      LookAhead(e.values, e.out, e.slots[0], e.slots[second], e.size, alpha, epsilon);
    });
  }

 private:
  double Alpha(uint64_t iteration, double learning_rate) const {
    const auto t = static_cast<double>(iteration);
    return learning_rate * std::sqrt(1 - std::pow(beta_2_, t)) / (1 - std::pow(beta_1_, t));
  }

  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    AdamFactors factors;
    factors.alpha = static_cast<float>(Alpha(step.iteration, step.learning_rate));
    factors.one_minus_beta_1 = 1 - beta_1_;
    factors.one_minus_beta_2 = 1 - beta_2_;
    factors.epsilon = epsilon_;
    factors.decay = step.decay;
    if (amsgrad_) {
      return UpdateOf([factors](const Elements& e) {
        ApplyAmsgrad(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.slots[2], e.size,
                     factors);
      });
    }
    return UpdateOf([factors](const Elements& e) {
      ApplyAdam(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.size, factors);
    });
  }

  const double beta_1_;
  const double beta_2_;
  const double epsilon_;
  const bool amsgrad_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdam(KerasOptions& options) {
  return std::make_unique<Adam>(options, 0);
}

std::unique_ptr<Optimizer> MakeAdamW(KerasOptions& options) {
  return std::make_unique<Adam>(options, 0.004);
}

}  // namespace shoal
