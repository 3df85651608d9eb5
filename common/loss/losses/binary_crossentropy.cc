// Keras's BinaryCrossentropy (keras/src/losses/losses.py, keras/src/backend/jax/nn.py):
//   -t log p - (1 - t) log(1 - p),  p = sigmoid(logit), or a probability clipped to
//   [1e-7, 1 - 1e-7];  t is smoothed before: t (1 - s) + s / 2.
#include "common/loss/binary_formula.h"

namespace shoal {
namespace {

class BinaryCrossentropy : public FormulaLoss {
 public:
  explicit BinaryCrossentropy(KerasOptions& options)
      : FormulaLoss(options),
        from_logits_(options.Flag("from_logits", false)),
        label_smoothing_(ReadLabelSmoothing(options)) {
    RejectOtherAxis(options);
  }

  Target target() const override { return Target::kProbabilityPerOutput; }

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    target = Smooth(target, label_smoothing_, 2);
    FormulaContext* const context = prediction.context;
    const ValueId logits =
        from_logits_ ? prediction.id : LogitsOfSigmoid(context->graph(), prediction.id);
    if (logits == kNoValue) return BinaryCrossentropyOf(prediction, target);
    // log sigmoid(x) = -softplus(-x), log(1 - sigmoid(x)) = -softplus(x)
    const Expression x = {context, logits};
    constexpr auto kSoftplus = ActivationAttributes::Kind::kSoftplus;
    return target * Activate(-x, kSoftplus) + (1 - target) * Activate(x, kSoftplus);
  }

  const bool from_logits_;
  const double label_smoothing_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeBinaryCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<BinaryCrossentropy>(options);
}

}  // namespace shoal
