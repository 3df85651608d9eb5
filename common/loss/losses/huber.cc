// Keras's Huber (keras/src/losses/losses.py), with e = |p - t|:
//   e^2 / 2 where e <= delta, else delta e - delta^2 / 2
// which is c^2 / 2 + delta (e - c) with c = min(e, delta).
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class Huber : public FormulaLoss {
 public:
  explicit Huber(KerasOptions& options)
      : FormulaLoss(options),
        delta_(options.Number("delta", 1, {.min = 0, .max = 1e9, .above_min = true})) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression error = Abs(prediction - target);
    const Expression squared = AtMost(error, delta_);
    return 0.5 * Square(squared) + delta_ * (error - squared);
  }

  const double delta_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeHuberLoss(KerasOptions& options) {
  return std::make_unique<Huber>(options);
}

}  // namespace shoal
