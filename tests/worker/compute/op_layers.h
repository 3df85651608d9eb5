#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/model/ops/activation.h"
#include "common/model/ops/binary.h"
#include "common/model/ops/window.h"
#include "tests/worker/compute/op_case.h"

// Layers of drawn cases: each appends ops behind an image and returns their result.

namespace shoal::layers {

using Activated = ActivationAttributes::Kind;

inline constexpr Window kPixel = {};
inline constexpr Window kSame3x3 = {.size = {3, 3}, .padding = Padding::kSame};

template <typename T, size_t n>
T OneOf(OpCase& c, const std::array<T, n>& choices) {
  return choices[c.Pick(0, n - 1)];
}

// Blocked layouts have blocks of 8 or 16 channels: full ones, and ones that are filled up.
inline int64_t Channels(OpCase& c) { return OneOf<int64_t, 6>(c, {4, 8, 12, 16, 24, 33}); }

ValueId Conv2D(OpCase& c, ValueId x, int64_t filters, const Window& window);
ValueId DepthwiseConv2D(OpCase& c, ValueId x, const Window& window);
ValueId Activation(OpCase& c, ValueId x, const ActivationAttributes& attributes);
ValueId AnyActivation(OpCase& c, ValueId x);
ValueId BatchNormalization(OpCase& c, ValueId x);
ValueId LayerNormalization(OpCase& c, ValueId x);
ValueId Pool2D(OpCase& c, ValueId x);
ValueId GlobalAveragePool2D(OpCase& c, ValueId x, bool keep_dims);
ValueId Add(OpCase& c, std::vector<ValueId> terms);
ValueId Binary(OpCase& c, BinaryOp::Kind kind, ValueId a, ValueId b);
// The mean of the elements that `shape` lacks.
ValueId MeanTo(OpCase& c, ValueId x, Shape shape);
ValueId Concatenate(OpCase& c, std::vector<ValueId> parts, int axis);
ValueId Resize(OpCase& c, ValueId x, int64_t height, int64_t width);
ValueId PadOrCrop(OpCase& c, ValueId x);
ValueId Dropout(OpCase& c, ValueId x);
ValueId Rescale(OpCase& c, ValueId x);
ValueId DenseOfPixels(OpCase& c, ValueId x);
ValueId FirstImage(OpCase& c);

}  // namespace shoal::layers
