#pragma once

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/model/keras/layer_builder.h"
#include "common/model/ops/window.h"

namespace shoal {

// What sizes, strides and dilations of a window may be; beyond that no image is.
inline constexpr IntegerRange kWindowExtents = {1, 1 << 20};

// The layer's option "padding": "valid", which is Keras's default, or "same".
inline absl::StatusOr<Padding> ReadPadding(LayerBuilder& layer) {
  SHOAL_ASSIGN_OR_RETURN(const size_t index, layer.Option("padding").OneOf({"valid", "same"}, 0));
  return index == 0 ? Padding::kValid : Padding::kSame;
}

}  // namespace shoal
