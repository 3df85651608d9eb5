// Keras's Tversky (keras/src/losses/losses.py), with sums along `axis`:
//   1 - sum(t p) / (sum(t p) + alpha sum((1 - p) t) + beta sum(p (1 - t)) + 1e-7)
#include "common/loss/overlap_axes.h"

namespace shoal {
namespace {

class Tversky : public FormulaLoss {
 public:
  explicit Tversky(KerasOptions& options)
      : FormulaLoss(options),
        alpha_(options.Number("alpha", 0.5, {.min = 0, .max = 1000})),
        beta_(options.Number("beta", 0.5, {.min = 0, .max = 1000})),
        axes_(ReadOverlapAxes(options)) {}

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const auto sum = [this](Expression x) { return SumAlong(x, axes_); };
    const Expression both = sum(target * prediction);
    const Expression one = alpha_ * sum((1 - prediction) * target);
    const Expression other = beta_ * sum(prediction * (1 - target));
    return 1 - both / (both + one + other + kLossEpsilon);
  }

  const double alpha_;
  const double beta_;
  const std::vector<int64_t> axes_;
};

}  // namespace

std::unique_ptr<KerasLoss> MakeTverskyLoss(KerasOptions& options) {
  return std::make_unique<Tversky>(options);
}

}  // namespace shoal
