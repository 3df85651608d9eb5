#pragma once

#include "absl/status/statusor.h"
#include "common/model/keras/layer_call.h"
#include "common/model/ops/binary.h"

namespace shoal {

// Folds the inputs of a call, first to last, by a function of two, as Keras's merging layers do:
// shapes broadcast, and axes that one lacks come behind its batch.
absl::StatusOr<ValueId> FoldInputs(LayerCall& call, BinaryOp::Kind kind);

// A merging layer that is such a fold.
template <BinaryOp::Kind kKind>
class FoldLayer : public LayerConfig {
 public:
  explicit FoldLayer(LayerOptions&) {}
  absl::StatusOr<ValueId> Call(LayerCall& call) override { return FoldInputs(call, kKind); }
};

}  // namespace shoal
