#include "common/loss/fused_loss.h"

#include <memory>
#include <utility>

namespace shoal {

absl::StatusOr<Shape> FusedLoss::TargetShape(const Shape& prediction) const {
  return shoal::TargetShape(attributes_, prediction);
}

Loss::Target FusedLoss::target() const {
  switch (attributes_.kind) {
    case LossAttributes::Kind::kSparseCategoricalCrossentropy:
      return Target::kClassNumber;
    case LossAttributes::Kind::kCategoricalCrossentropy:
      return Target::kValuePerClass;
    case LossAttributes::Kind::kMeanSquaredError:
      return Target::kValuePerOutput;
  }
  return Target::kValuePerOutput;
}

absl::StatusOr<ValueId> FusedLoss::AppendTo(Graph* graph, ValueId prediction,
                                            ValueId target) const {
  auto op = std::make_shared<LossOp>();
  op->attributes = attributes_;
  const bool takes_probabilities =
      attributes_.kind != LossAttributes::Kind::kMeanSquaredError && !attributes_.from_logits;
  if (takes_probabilities) {
    if (const ValueId logits = LogitsOfSoftmax(*graph, prediction); logits != kNoValue) {
      prediction = logits;
      op->attributes.from_logits = true;
    }
  }
  return graph->Add(std::move(op), {prediction, target}, "loss");
}

}  // namespace shoal
