// Keras's BinaryFocalCrossentropy (keras/src/losses/losses.py):
//   (1 - p_t)^gamma bce(p, t),  p_t = t p + (1 - t)(1 - p),  and with apply_class_balancing times
//   t alpha + (1 - t)(1 - alpha);  p = sigmoid(logit) or as it is;  t is smoothed before.
#include "common/loss/binary_formula.h"
#include "common/loss/focal.h"

namespace shoal {
namespace {

class BinaryFocalCrossentropy : public FormulaLoss {
 public:
  explicit BinaryFocalCrossentropy(KerasOptions& options)
      : FormulaLoss(options),
        balanced_(options.Flag("apply_class_balancing", false)),
        focal_(options, 1) {}

  Target target() const override { return Target::kProbabilityPerOutput; }

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression t = Smooth(target, focal_.label_smoothing, 2);
    const Expression p = focal_.from_logits
                             ? Activate(prediction, ActivationAttributes::Kind::kSigmoid)
                             : prediction;
    const Expression p_t = t * p + (1 - t) * (1 - p);
    const Expression focal = focal_.Weigh(p_t, BinaryCrossentropyOf(p, t));
    if (!balanced_) return focal;
    return (focal_.alpha * t + (1 - focal_.alpha) * (1 - t)) * focal;
  }

  const bool balanced_;
  const Focal focal_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeBinaryFocalCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<BinaryFocalCrossentropy>(options);
}

}  // namespace shoal
