// Keras's Dice (keras/src/losses/losses.py), with sums along `axis`:
//   1 - 2 sum(t p) / (sum(t) + sum(p) + 1e-7)
#include "common/loss/overlap_axes.h"

namespace shoal {
namespace {

class Dice : public FormulaLoss {
 public:
  explicit Dice(KerasOptions& options) : FormulaLoss(options), axes_(ReadOverlapAxes(options)) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const auto sum = [this](Expression x) { return SumAlong(x, axes_); };
    return 1 - 2 * sum(target * prediction) / (sum(target) + sum(prediction) + kLossEpsilon);
  }

  const std::vector<int64_t> axes_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeDiceLoss(KerasOptions& options) {
  return std::make_unique<Dice>(options);
}

}  // namespace shoal
