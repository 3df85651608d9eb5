#pragma once

#include "absl/status/status.h"
#include "common/base/shape.h"

namespace shoal {

struct Expression;

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

// The penalty of a layer's activity_regularizer on each example, (None), from its values in
// `outputs` (None, ...). Keras divides it by the number of examples. Requires used() and no
// `orthogonal`.
Expression PenaltyOfExamples(const Regularizer& regularizer, Expression outputs);

// The penalty on the values `w`, [1], and its derivative with respect to them. Requires used().
Expression Penalty(const Regularizer& regularizer, Expression w);
Expression PenaltyGradient(const Regularizer& regularizer, Expression w);

}  // namespace shoal
