#pragma once

#include <cstdint>
#include <vector>

#include "common/base/shape.h"
#include "worker/compute/cpu/cpu_program_builder.h"

// Kernels that move channels or treat all of them alike also work in oneDNN's blocked layouts of
// images. Such an image is a row-major tensor [B, ceil(C / block), H, W, block] whose
// padding is zero. A block of 0 means the row-major layout [B, H, W, C].

namespace shoal::cpu {

// The block in which to compute `output`: that of the first blocked input. 0 if there is none or
// `output` must be row-major.
int64_t BlockFor(const std::vector<ValueId>& inputs, ValueId output, CpuProgramBuilder& program);

inline constexpr int64_t kMaxBlock = 16;

// The layout of an image with this block, which is not 0.
dnnl::memory::desc BlockedLayout(const Shape& image, int64_t block, ComputeDtype type);

// The shape of the row-major tensor that an image is: itself if `block` is 0.
Shape BlockedShape(const Shape& image, int64_t block);

// Returns the tensor of `value` with this block and elements of `type`: InBlocks() for an input,
// OutInBlocks() for a result. Values with a `block` must be images.
TensorId InBlocks(ValueId value, int64_t block, ComputeDtype type, CpuProgramBuilder& program);
TensorId OutInBlocks(ValueId value, int64_t block, ComputeDtype type, CpuProgramBuilder& program);

// Whether `shape` broadcasts to `image` and has numbers for each channel, equal for all pixels:
// [B, 1, 1, C], or without the first axes.
bool IsPerChannel(const Shape& shape, const Shape& image);

}  // namespace shoal::cpu
