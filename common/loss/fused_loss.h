#pragma once

#include "common/loss/keras_loss.h"
#include "common/model/ops/loss.h"

namespace shoal {

// A loss that is one op: the cross-entropies, which need care for numerical stability, and losses
// in frequent use.
class FusedLoss : public KerasLoss {
 public:
  absl::StatusOr<Shape> TargetShape(const Shape& prediction) const override;
  Target target() const override;
  // If a Softmax node computes the probabilities, uses its logits instead (exact and stable).
  absl::StatusOr<ValueId> AppendTo(Graph* graph, ValueId prediction, ValueId target) const override;

 protected:
  explicit FusedLoss(KerasOptions& options) : KerasLoss(options) {}

  LossAttributes attributes_;
};

}  // namespace shoal
