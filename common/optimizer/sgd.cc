// Keras's SGD (keras/src/optimizers/sgd.py). Without momentum w -= lr g. With it
//   m = momentum m - lr g,  w += m,  or, with Nesterov,  w += momentum m - lr g.
#include "common/optimizer/loop_update.h"

namespace shoal {
namespace {

SHOAL_VECTORIZED
void ApplyPlain(const UnalignedFloat* gradient, const float* values, float* out, size_t size,
                float learning_rate, float decay) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] - values[i] * decay;
    out[i] = value - learning_rate * gradient[i];
  }
}

SHOAL_VECTORIZED
void ApplyMomentum(const UnalignedFloat* gradient, const float* values, float* out, float* velocity,
                   size_t size, float learning_rate, float momentum, float decay) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] - values[i] * decay;
    const float m = momentum * velocity[i] - learning_rate * gradient[i];
    velocity[i] = m;
    out[i] = value + m;
  }
}

SHOAL_VECTORIZED
void ApplyNesterov(const UnalignedFloat* gradient, const float* values, float* out, float* velocity,
                   size_t size, float learning_rate, float momentum, float decay) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] - values[i] * decay;
    const float step = learning_rate * gradient[i];
    const float m = momentum * velocity[i] - step;
    velocity[i] = m;
    out[i] = value + momentum * m - step;
  }
}

SHOAL_VECTORIZED
void LookAhead(const float* values, float* out, const float* velocity, size_t size, float more) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) out[i] = values[i] + more * velocity[i];
}

class Sgd : public Optimizer {
 public:
  explicit Sgd(KerasOptions& options)
      : Optimizer(options, {.learning_rate = 0.01}),
        momentum_(options.Number("momentum", 0, {.min = 0, .max = 1})),
        nesterov_(options.Flag("nesterov", false)) {
    if (momentum_ != 0) AddSlot("sgd_momentum");
  }

  // The momentum is what the last update added.
  std::unique_ptr<const Update> PrepareAhead(uint64_t /*iteration*/, double more) const override {
    if (momentum_ == 0) return nullptr;
    return UpdateOf([more](const Elements& e) {
      LookAhead(e.values, e.out, e.slots[0], e.size, static_cast<float>(more));
    });
  }

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    const float rate = step.learning_rate, momentum = momentum_, decay = step.decay;
    if (momentum_ == 0) {
      return UpdateOf(
          [=](const Elements& e) { ApplyPlain(e.gradient, e.values, e.out, e.size, rate, decay); });
    }
    const auto apply = nesterov_ ? ApplyNesterov : ApplyMomentum;
    return UpdateOf([=](const Elements& e) {
      apply(e.gradient, e.values, e.out, e.slots[0], e.size, rate, momentum, decay);
    });
  }

  const double momentum_;
  const bool nesterov_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeSGD(KerasOptions& options) { return std::make_unique<Sgd>(options); }

}  // namespace shoal
