// Keras's MeanSquaredError (keras/src/losses/losses.py):
//   (p - t)^2
#include "common/loss/fused_loss.h"

namespace shoal {
namespace {

class MeanSquaredError : public FusedLoss {
 public:
  explicit MeanSquaredError(KerasOptions& options) : FusedLoss(options) {
    attributes_.kind = LossAttributes::Kind::kMeanSquaredError;
  }
};

}  // namespace

std::unique_ptr<KerasLoss> MakeMeanSquaredErrorLoss(KerasOptions& options) {
  return std::make_unique<MeanSquaredError>(options);
}

}  // namespace shoal
