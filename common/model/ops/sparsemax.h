#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> max(x - tau, 0) along the last axis: what Keras calls sparsemax
// (keras.ops.sparsemax, 3.15), which is not that of Martins and Astudillo, "From Softmax to
// Sparsemax" (2016), though Keras refers to them. With z the elements, largest first, c[j] = z[1] +
// ... + z[j], and k the last j of which 1 + j z[j] > c[j]:
//   Keras's  tau = (c[1] + ... + c[k] - 1) / k
//   paper's  tau = (c[k] - 1) / k
// They are the same where k is 1. Where it is more, Keras's row does not sum to 1, is all zero
// where z[1] is large, and jumps where k changes.
struct SparsemaxOp : Op {
  SHOAL_OP(Sparsemax);
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, dy) -> dx: z[j] is in tau (k - j + 1) / k times; of equal elements the first is the larger
// one, and an element that is tau gets half, both as in JAX.
struct SparsemaxBackwardOp : Op {
  SHOAL_OP(SparsemaxBackward);
};

}  // namespace shoal
