// Keras's LogCosh (keras/src/losses/losses.py):
//   log(cosh(e)) = e + softplus(-2 e) - log(2)  with  e = p - t
#include <cmath>

#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class LogCosh : public FormulaLoss {
 public:
  explicit LogCosh(KerasOptions& options) : FormulaLoss(options) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const Expression error = prediction - target;
    return error + Activate(-2 * error, ActivationAttributes::Kind::kSoftplus) - std::log(2.0);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeLogCoshLoss(KerasOptions& options) {
  return std::make_unique<LogCosh>(options);
}

}  // namespace shoal
