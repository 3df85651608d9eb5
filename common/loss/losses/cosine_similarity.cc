// Keras's CosineSimilarity (keras/src/losses/losses.py):
//   -sum over the last axis of (p / |p|) (t / |t|)
// where a norm is at least 1e-7 (keras.ops.normalize).
#include "common/loss/keras_loss.h"

namespace shoal {
namespace {

class CosineSimilarity : public RowLoss {
 public:
  explicit CosineSimilarity(KerasOptions& options) : RowLoss(options) { RejectOtherAxis(options); }

 private:
  Expression Formula(Expression prediction, Expression target) const override {
    const auto normalized = [](Expression x) {
      return x / SquareRoot(AtLeast(SumOfRows(Square(x)), kLossEpsilon * kLossEpsilon));
    };
    return -SumOfRows(normalized(prediction) * normalized(target));
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeCosineSimilarityLoss(KerasOptions& options) {
  return std::make_unique<CosineSimilarity>(options);
}

}  // namespace shoal
