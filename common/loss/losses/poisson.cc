// Keras's Poisson (keras/src/losses/losses.py):
//   p - t log(p + 1e-7)
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class Poisson : public FormulaLoss {
 public:
  explicit Poisson(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    return prediction - target * Log(prediction + kLossEpsilon);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakePoissonLoss(KerasOptions& options) {
  return std::make_unique<Poisson>(options);
}

}  // namespace shoal
