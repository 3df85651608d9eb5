// Keras's CategoricalCrossentropy (keras/src/losses/losses.py, keras/src/backend/jax/nn.py):
//   -sum over the classes of t log q,  where q = softmax(p) of logits, else p / sum(p) clipped to
//   [1e-7, 1 - 1e-7];  t is smoothed before: t (1 - s) + s / classes.
#include "common/loss/fused_loss.h"

namespace shoal {
namespace {

class CategoricalCrossentropy : public FusedLoss {
 public:
  explicit CategoricalCrossentropy(KerasOptions& options) : FusedLoss(options) {
    attributes_.kind = LossAttributes::Kind::kCategoricalCrossentropy;
    attributes_.from_logits = options.Flag("from_logits", false);
    attributes_.label_smoothing = ReadLabelSmoothing(options);
    RejectOtherAxis(options);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeCategoricalCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<CategoricalCrossentropy>(options);
}

}  // namespace shoal
