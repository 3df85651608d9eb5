#pragma once

#include "absl/status/status.h"
#include "common/base/shape.h"

namespace shoal {

struct Expression;

// What a variable's values, or a layer's outputs, add to the loss, as Keras's regularizers do
// (keras/src/regularizers/regularizers.py):
//   l1 sum|w| + l2 sum(w^2) + orthogonal / (n (n - 1)) sum over i != j of |u_i · u_j|,
// u_i the n rows (or columns) of w with length 1. Plain data.
struct Regularizer {
  double l1 = 0;
  double l2 = 0;
  double orthogonal = 0;  // of a matrix only
  bool of_columns = false;

  // Whether it adds anything.
  bool used() const { return l1 != 0 || l2 != 0 || orthogonal != 0; }
};

// That it can be of a variable of that shape.
absl::Status CheckShape(const Regularizer& regularizer, const Shape& shape);

// What each example's values of `outputs` (None, ...) add to its loss, (None): of a layer's
// activity_regularizer, which Keras divides by the number of examples. Of one that is used, without
// `orthogonal`.
Expression PenaltyOfExamples(const Regularizer& regularizer, Expression outputs);

// What the values `w` add to the loss, [1], and its derivative with respect to them. Of one that is
// used.
Expression Penalty(const Regularizer& regularizer, Expression w);
Expression PenaltyGradient(const Regularizer& regularizer, Expression w);

}  // namespace shoal
