#pragma once

#include "absl/status/status.h"
#include "common/base/shape.h"

namespace shoal {

// The penalty that a variable's values, or a layer's outputs, add to the loss. Same as Keras's
// regularizers (keras/src/regularizers/regularizers.py):
//   l1 sum|w| + l2 sum(w^2) + orthogonal / (n (n - 1)) sum over i != j of |u_i · u_j|,
// where u_i are the n rows (or columns) of w, normalized to length 1. Plain data.
struct Regularizer {
  double l1 = 0;
  double l2 = 0;
  double orthogonal = 0;  // for a matrix only
  bool of_columns = false;

  // Whether it adds any penalty.
  bool used() const { return l1 != 0 || l2 != 0 || orthogonal != 0; }
};

// Returns an error unless the regularizer fits a variable of this shape.
absl::Status CheckShape(const Regularizer& regularizer, const Shape& shape);

}  // namespace shoal
