#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"

// Checks that several ops' InferShapes share. Errors name what was wanted and the shape that came.

namespace shoal {

// One shape as a result of InferShapes.
inline std::vector<Shape> OneShape(Shape shape) { return {std::move(shape)}; }

// That there are `least` to `most` inputs.
absl::Status CheckInputCount(const std::vector<Shape>& inputs, size_t least, size_t most);

// That `shape` has `rank` axes.
absl::Status CheckRank(const std::string& what, const Shape& shape, size_t rank);

// That `actual` is `expected`.
absl::Status CheckSameShape(const std::string& what, const Shape& actual, const Shape& expected);

// The rule of an op of `count` inputs, all of the shape of its output.
absl::StatusOr<std::vector<Shape>> SameShapes(const std::vector<Shape>& inputs, size_t count);

// Of a normalization: that there are `count` inputs, x with axes beside the batch's and, after it,
// variables with a number for each of x's channels.
absl::Status CheckNormalization(const std::vector<Shape>& inputs, size_t count);

}  // namespace shoal
