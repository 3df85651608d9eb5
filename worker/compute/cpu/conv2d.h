#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/shape.h"
#include "common/model/ops/window.h"
#include "worker/compute/cpu/cpu_program_builder.h"

namespace shoal::cpu {

// A convolution with any number of groups, including the depthwise one.
struct Convolution {
  const Window& window;
  int64_t groups = 1;
  Shape kernel;  // [kh, kw, C / groups, F]
};

// Add the steps of `node`. Its inputs and outputs are those of the ops in ops/conv2d.h. A
// FoldedNormalization has more inputs (plan/fused_ops.h).
absl::Status AddConvolution(const Node& node, const Convolution& convolution,
                            CpuProgramBuilder& program);
absl::Status AddConvolutionBackwardData(const Node& node, const Convolution& convolution,
                                        CpuProgramBuilder& program);
absl::Status AddConvolutionBackwardWeights(const Node& node, const Convolution& convolution,
                                           CpuProgramBuilder& program);

}  // namespace shoal::cpu
