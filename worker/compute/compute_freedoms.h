#pragma once

namespace shoal {

// What a GPU may do to be faster. Without any of it float32 is computed in float32, and what is
// computed again, on a GPU of the same kind, has the same bits. Others have no use for it.
struct ComputeFreedoms {
  // Convolutions and products of float32 may read 19 bits of a number (TF32), which tensor cores
  // multiply; sums stay float32.
  bool tf32 = false;
  // The convolutions of a step, though not of an evaluation, may be computed by what was fastest
  // when it was tried: that may be another the next time, and need not add up in one order.
  // So may the sum of the gradients of several GPUs, by NCCL.
  bool nondeterministic = false;
};

}  // namespace shoal
