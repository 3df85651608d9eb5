#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"

// Checks that InferShapes of several ops share. Errors name the expected and the actual shape.

namespace shoal {

// One shape, as a result of InferShapes.
inline std::vector<Shape> OneShape(Shape shape) { return {std::move(shape)}; }

// Returns an error unless there are `min` to `max` inputs.
absl::Status CheckInputCount(const std::vector<Shape>& inputs, size_t min, size_t max);

// Returns an error unless `shape` has `rank` axes. `what` names the tensor.
absl::Status CheckRank(const std::string& what, const Shape& shape, size_t rank);

// Returns an error unless `actual` is `expected`.
absl::Status CheckSameShape(const std::string& what, const Shape& actual, const Shape& expected);

// InferShapes of an op with `count` inputs that all have the shape of its output.
absl::StatusOr<std::vector<Shape>> SameShapes(const std::vector<Shape>& inputs, size_t count);

// Checks the inputs of a normalization. Requires `count` inputs: x with more axes than the batch's,
// then variables with one number for each of x's channels.
absl::Status CheckNormalization(const std::vector<Shape>& inputs, size_t count);

}  // namespace shoal
