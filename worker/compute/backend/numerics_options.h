#pragma once

namespace shoal {

// Liberties with numerics that make a GPU faster. Without them a GPU computes float32 in float32,
// and repeating a computation on a GPU of the same kind gives the same bits. Other devices ignore
// them.
struct NumericsOptions {
  // Convolutions and matrix products of float32 may read 19 bits of a number (TF32), which tensor
  // cores multiply. Sums stay float32.
  bool tf32 = false;
  // The convolutions of a training step, but not of an evaluation, may use the algorithm that was
  // fastest when tried. The choice may differ the next time, and its order of summation may vary.
  // NCCL may also add up the gradients of several GPUs.
  bool nondeterministic = false;
};

}  // namespace shoal
