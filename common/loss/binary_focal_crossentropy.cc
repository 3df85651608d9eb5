// Keras's BinaryFocalCrossentropy (keras/src/losses/losses.py):
//   (1 - p_t)^gamma bce(p, t),  p_t = t p + (1 - t)(1 - p),  and with apply_class_balancing times
//   t alpha + (1 - t)(1 - alpha);  p = sigmoid(logit) or as it is;  t is smoothed before.
#include "common/loss/binary_formula.h"

namespace shoal {
namespace {

class BinaryFocalCrossentropy : public FormulaLoss {
 public:
  explicit BinaryFocalCrossentropy(KerasOptions& options)
      : FormulaLoss(options),
        balanced_(options.Flag("apply_class_balancing", false)),
        alpha_(options.Number("alpha", 0.25, {.min = 0, .max = 1})),
        gamma_(options.Number("gamma", 2, {.min = 0, .max = 1000})),
        from_logits_(options.Flag("from_logits", false)),
        label_smoothing_(ReadLabelSmoothing(options)) {
    RejectOtherAxis(options);
  }

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression t = Smooth(target, label_smoothing_, 2);
    const Expression p =
        from_logits_ ? Activate(prediction, ActivationAttributes::Kind::kSigmoid) : prediction;
    const Expression p_t = t * p + (1 - t) * (1 - p);
    const Expression focal = Power(1 - p_t, gamma_) * BinaryCrossentropyOf(p, t);
    if (!balanced_) return focal;
    return (alpha_ * t + (1 - alpha_) * (1 - t)) * focal;
  }

  const bool balanced_;
  const double alpha_;
  const double gamma_;
  const bool from_logits_;
  const double label_smoothing_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeBinaryFocalCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<BinaryFocalCrossentropy>(options);
}

}  // namespace shoal
