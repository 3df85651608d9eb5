// Delayed Nesterov momentum (Liu et al., "Asynchronous Local-SGD Training for Language Modeling",
// https://arxiv.org/abs/2401.09135, algorithm 3 with c = 0), for differences that arrive one by
// one:
//   B += g,  w -= lr g / N;  each N-th update also  m = momentum m + B / N,  w -= lr momentum m,
//   B = 0.
// N differences in a row have the same effect as one update of Nesterov's momentum with their mean:
// m = momentum m + g and w -= lr (g + momentum m). No worker waits for the others. The number of
// differences in the buffer is the update's number modulo N, so it needs no slot. Each update
// applies an N-th of the weight decay.
#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

struct NesterovRoundFactors {
  float rate_per_update;  // lr / N
  float momentum;
  float momentum_rate;  // lr momentum
  float share;          // 1 / N
  float decay;
};

SHOAL_VECTORIZED
void ApplyOne(const UnalignedFloat* gradient, const float* values, float* out, float* buffer,
              size_t size, NesterovRoundFactors factors) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * factors.decay;
    buffer[i] += g;
    out[i] = value - factors.rate_per_update * g;
  }
}

SHOAL_VECTORIZED
void ApplyWithMomentum(const UnalignedFloat* gradient, const float* values, float* out,
                       float* momentum, float* buffer, size_t size, NesterovRoundFactors factors) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    const float value = values[i] - values[i] * factors.decay;
    const float m = factors.momentum * momentum[i] + (buffer[i] + g) * factors.share;
    momentum[i] = m;
    buffer[i] = 0;
    out[i] = value - factors.rate_per_update * g - factors.momentum_rate * m;
  }
}

class DelayedNesterov : public Optimizer {
 public:
  explicit DelayedNesterov(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.7}),
        momentum_(options.Number("momentum", 0.9, {.min = 0, .max = 1})),
        every_(options.RequiredInteger("momentum_every", {1, 1 << 20})) {
    AddSlot("delayed_nesterov_momentum");
    AddSlot("delayed_nesterov_buffer");
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    const double share = 1 / static_cast<double>(every_);
    const NesterovRoundFactors factors = {
        .rate_per_update = static_cast<float>(step.learning_rate * share),
        .momentum = static_cast<float>(momentum_),
        .momentum_rate = static_cast<float>(step.learning_rate * momentum_),
        .share = static_cast<float>(share),
        .decay = static_cast<float>(step.decay * share)};
    if (step.iteration % every_ != 0) {
      return UpdateOf([factors](const Elements& e) {
        ApplyOne(e.gradient, e.values, e.out, e.slots[1], e.size, factors);
      });
    }
    return UpdateOf([factors](const Elements& e) {
      ApplyWithMomentum(e.gradient, e.values, e.out, e.slots[0], e.slots[1], e.size, factors);
    });
  }

  const double momentum_;
  const uint64_t every_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeDelayedNesterov(KerasOptions& options) {
  return std::make_unique<DelayedNesterov>(options);
}

}  // namespace shoal
