// Keras's CategoricalHinge (keras/src/losses/losses.py):
//   max(negative - positive + 1, 0)  with  positive = sum(t p),  negative = max((1 - t) p),
// over the last axis.
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class CategoricalHinge : public RowLoss {
 public:
  explicit CategoricalHinge(KerasOptions& options) : RowLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression positive = SumOfRows(target * prediction);
    const Expression negative = MaximumOfRows((1 - target) * prediction);
    return AtLeast(negative - positive + 1, 0);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeCategoricalHingeLoss(KerasOptions& options) {
  return std::make_unique<CategoricalHinge>(options);
}

}  // namespace shoal
