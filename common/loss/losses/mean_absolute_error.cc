// Keras's MeanAbsoluteError (keras/src/losses/losses.py):
//   |p - t|
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class MeanAbsoluteError : public FormulaLoss {
 public:
  explicit MeanAbsoluteError(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    return Abs(prediction - target);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeMeanAbsoluteErrorLoss(KerasOptions& options) {
  return std::make_unique<MeanAbsoluteError>(options);
}

}  // namespace shoal
