// Keras's CategoricalFocalCrossentropy (keras/src/losses/losses.py):
//   -sum over the classes of alpha (1 - q)^gamma t log q,  q = p / sum(p) clipped to
//   [1e-7, 1 - 1e-7], p = softmax(logits) or as it is;  t is smoothed before.
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class CategoricalFocalCrossentropy : public RowLoss {
 public:
  explicit CategoricalFocalCrossentropy(KerasOptions& options)
      : RowLoss(options),
        alpha_(options.Number("alpha", 0.25, {.min = 0, .max = 1000})),
        gamma_(options.Number("gamma", 2, {.min = 0, .max = 1000})),
        from_logits_(options.Flag("from_logits", false)),
        label_smoothing_(ReadLabelSmoothing(options)) {
    RejectOtherAxis(options);
  }

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression t = Smooth(target, label_smoothing_, prediction.shape().back());
    const Expression p = from_logits_ ? Softmax(prediction) : prediction;
    const Expression q = Clip(p / SumOfRows(p), kLossEpsilon, 1 - kLossEpsilon);
    return SumOfRows(-alpha_ * Power(1 - q, gamma_) * (t * Log(q)));
  }

  const double alpha_;
  const double gamma_;
  const bool from_logits_;
  const double label_smoothing_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeCategoricalFocalCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<CategoricalFocalCrossentropy>(options);
}

}  // namespace shoal
