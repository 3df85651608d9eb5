#pragma once

#include "absl/status/statusor.h"
#include "common/model/keras/layer_call.h"
#include "common/model/ops/binary.h"

namespace shoal {

// Folds the inputs of a call, first to last, with a binary op, as Keras's merging layers do. Shapes
// broadcast. Missing axes are inserted after the batch axis.
absl::StatusOr<ValueId> FoldInputs(LayerCall& call, BinaryOp::Kind kind);

// A merging layer that folds its inputs.
template <BinaryOp::Kind kKind>
class FoldLayer : public LayerConfig {
 public:
  explicit FoldLayer(LayerOptions&) {}
  absl::StatusOr<ValueId> Call(LayerCall& call) override { return FoldInputs(call, kKind); }
};

}  // namespace shoal
