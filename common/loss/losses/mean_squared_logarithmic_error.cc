// Keras's MeanSquaredLogarithmicError (keras/src/losses/losses.py):
//   (log(max(p, 1e-7) + 1) - log(max(t, 1e-7) + 1))^2
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class MeanSquaredLogarithmicError : public FormulaLoss {
 public:
  explicit MeanSquaredLogarithmicError(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const auto log_of = [](Expression x) { return Log(AtLeast(x, kLossEpsilon) + 1); };
    return Square(log_of(prediction) - log_of(target));
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeMeanSquaredLogarithmicErrorLoss(KerasOptions& options) {
  return std::make_unique<MeanSquaredLogarithmicError>(options);
}

}  // namespace shoal
