#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> max(x - tau, 0) along the last axis: Keras's sparsemax (keras.ops.sparsemax, 3.15). Keras
// refers to Martins and Astudillo, "From Softmax to Sparsemax" (2016), but differs from them. Let z
// be the elements, largest first, c[j] = z[1] + ... + z[j], and k the last j with 1 + j z[j] >
// c[j]. Then:
//   Keras's  tau = (c[1] + ... + c[k] - 1) / k
//   paper's  tau = (c[k] - 1) / k
// Both are equal if k is 1. For larger k, Keras's row does not sum to 1, is all zero if z[1] is
// large, and jumps where k changes.
struct SparsemaxOp : Op {
  SHOAL_OP(Sparsemax);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, dy) -> dx. The derivative of tau with respect to z[j] is (k - j + 1) / k. As in JAX, the
// first of equal elements counts as the larger one, and an element equal to tau gets half.
struct SparsemaxBackwardOp : Op {
  SHOAL_OP(SparsemaxBackward);
};

}  // namespace shoal
