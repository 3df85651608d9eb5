// Keras's CategoricalFocalCrossentropy (keras/src/losses/losses.py):
//   -sum over the classes of alpha (1 - q)^gamma t log q,  q = p / sum(p) clipped to
//   [1e-7, 1 - 1e-7], p = softmax(logits) or as it is;  t is smoothed before.
#include "common/loss/focal.h"

namespace shoal {
namespace {

class CategoricalFocalCrossentropy : public RowLoss {
 public:
  explicit CategoricalFocalCrossentropy(KerasOptions& options)
      : RowLoss(options), focal_(options, 1000) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression t = Smooth(target, focal_.label_smoothing, prediction.shape().back());
    const Expression p = focal_.from_logits ? Softmax(prediction) : prediction;
    const Expression q = Clip(p / SumOfRows(p), kLossEpsilon, 1 - kLossEpsilon);
    return SumOfRows(-focal_.alpha * focal_.Weigh(q, t * Log(q)));
  }

  const Focal focal_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeCategoricalFocalCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<CategoricalFocalCrossentropy>(options);
}

}  // namespace shoal
