#pragma once

namespace shoal {

// What a GPU may do to be faster. Without any of it float32 is computed in float32. Others have no
// use for it.
struct ComputeFreedoms {
  // Convolutions and products of float32 may read 19 bits of a number (TF32), which tensor cores
  // multiply; sums stay float32.
  bool tf32 = false;
};

}  // namespace shoal
