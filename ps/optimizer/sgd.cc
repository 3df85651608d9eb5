#include "ps/optimizer/sgd.h"

#include "ps/optimizer/vectorize.h"

namespace shoal {
namespace {

SHOAL_VECTORIZE
void ApplyPlain(const UnalignedFloat* gradient, const float* values, float* out, size_t size,
                float learning_rate, float decay) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] - values[i] * decay;
    out[i] = value - learning_rate * gradient[i];
  }
}

SHOAL_VECTORIZE
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

SHOAL_VECTORIZE
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

class SgdUpdate : public Update {
 public:
  explicit SgdUpdate(const Job::Optimizer& options)
      : learning_rate_(options.learning_rate),
        momentum_(options.momentum),
        nesterov_(options.nesterov),
        decay_(options.learning_rate * options.weight_decay) {}

  void Apply(std::span<const float> gradient, std::span<const float> values, std::span<float> out,
             std::span<float* const> slots) const override {
    const auto* g = reinterpret_cast<const UnalignedFloat*>(gradient.data());
    if (momentum_ == 0) {
      ApplyPlain(g, values.data(), out.data(), out.size(), learning_rate_, decay_);
    } else if (nesterov_) {
      ApplyNesterov(g, values.data(), out.data(), slots[0], out.size(), learning_rate_, momentum_,
                    decay_);
    } else {
      ApplyMomentum(g, values.data(), out.data(), slots[0], out.size(), learning_rate_, momentum_,
                    decay_);
    }
  }

 private:
  const float learning_rate_;
  const float momentum_;
  const bool nesterov_;
  const float decay_;  // learning rate times weight decay
};

}  // namespace

std::unique_ptr<const Update> Sgd::Prepare(uint64_t) const {
  return std::make_unique<SgdUpdate>(options_);
}

}  // namespace shoal
