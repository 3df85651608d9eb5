#pragma once

#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/program/cuda_program_builder.h"

namespace shoal::cuda {

// The slices for sums along the columns of a matrix with these extents, read in packs of `width`.
inline ColumnSlices SlicesOf(const MatrixExtents& extents, int width,
                             const CudaProgramBuilder& program) {
  return ColumnSlices(extents.rows, extents.columns / width, program.target().few_blocks());
}

}  // namespace shoal::cuda
