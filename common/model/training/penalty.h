#pragma once

#include "common/model/regularizer.h"
#include "common/model/training/expression.h"

namespace shoal {

// The penalty of a layer's activity_regularizer on each example, (None), from its values in
// `outputs` (None, ...). Keras divides it by the number of examples. Requires used() and no
// `orthogonal`.
Expression PenaltyOfExamples(const Regularizer& regularizer, Expression outputs);

// The penalty on the values `w`, [1], and its derivative with respect to them. Requires used().
Expression Penalty(const Regularizer& regularizer, Expression w);
Expression PenaltyGradient(const Regularizer& regularizer, Expression w);

}  // namespace shoal
