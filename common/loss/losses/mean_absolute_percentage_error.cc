// Keras's MeanAbsolutePercentageError (keras/src/losses/losses.py):
//   100 |(t - p) / max(|t|, 1e-7)|
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class MeanAbsolutePercentageError : public FormulaLoss {
 public:
  explicit MeanAbsolutePercentageError(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    return 100 * Abs((target - prediction) / AtLeast(Abs(target), kLossEpsilon));
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeMeanAbsolutePercentageErrorLoss(KerasOptions& options) {
  return std::make_unique<MeanAbsolutePercentageError>(options);
}

}  // namespace shoal
