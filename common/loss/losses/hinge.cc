// Keras's Hinge (keras/src/losses/losses.py):
//   max(1 - t p, 0), where targets of 0 and 1 mean -1 and 1
#include "common/loss/hinge_target.h"
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class Hinge : public FormulaLoss {
 public:
  explicit Hinge(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression below = AtLeast(1 - HingeTarget(target) * prediction, 0);
    return below;
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeHingeLoss(KerasOptions& options) {
  return std::make_unique<Hinge>(options);
}

}  // namespace shoal
