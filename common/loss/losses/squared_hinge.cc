// Keras's SquaredHinge (keras/src/losses/losses.py):
//   max(1 - t p, 0)^2, where targets of 0 and 1 mean -1 and 1
#include "common/loss/hinge_target.h"
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class SquaredHinge : public FormulaLoss {
 public:
  explicit SquaredHinge(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression below = AtLeast(1 - HingeTarget(target) * prediction, 0);
    return Square(below);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeSquaredHingeLoss(KerasOptions& options) {
  return std::make_unique<SquaredHinge>(options);
}

}  // namespace shoal
