// Keras's SparseCategoricalCrossentropy (keras/src/losses/losses.py, keras/src/backend/jax/nn.py):
// CategoricalCrossentropy for the one class whose number is the target.
#include "common/loss/fused_loss.h"

namespace shoal {
namespace {

class SparseCategoricalCrossentropy : public FusedLoss {
 public:
  explicit SparseCategoricalCrossentropy(KerasOptions& options) : FusedLoss(options) {
    attributes_.kind = LossAttributes::Kind::kSparseCategoricalCrossentropy;
    attributes_.from_logits = options.Flag("from_logits", false);
    RejectUnlessNull(options.given(), "ignore_class", "class to ignore");
    RejectOtherAxis(options);
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeSparseCategoricalCrossentropyLoss(KerasOptions& options) {
  return std::make_unique<SparseCategoricalCrossentropy>(options);
}

}  // namespace shoal
