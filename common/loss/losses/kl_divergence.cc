// Keras's KLDivergence (keras/src/losses/losses.py):
//   sum over the last axis of t log(t / p), both clipped to [1e-7, 1]
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class KLDivergence : public RowLoss {
 public:
  explicit KLDivergence(KerasOptions& options) : RowLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression p = Clip(prediction, kLossEpsilon, 1), t = Clip(target, kLossEpsilon, 1);
    return SumOfRows(t * Log(t / p));
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeKLDivergenceLoss(KerasOptions& options) {
  return std::make_unique<KLDivergence>(options);
}

}  // namespace shoal
