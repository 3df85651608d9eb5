#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/compute_dtype.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cpu {

// Ranges of one of a step's tensors as floats, one range at a time, for loops that go over a range
// several times. float32 elements stay where they are. Those of bfloat16 are converted in a buffer,
// so that a result is rounded once. Each thread needs its own. The tensors outlive it.
class FloatRange {
 public:
  // For ranges of at most `max_count` elements of tensor `i`, whose elements are of `type`: float32
  // or bfloat16.
  FloatRange(const LoopTensors& data, size_t i, ComputeDtype type, int64_t max_count);

  // Returns the elements from `begin` on. They are valid until the next call.
  const float* Load(int64_t begin, int64_t count);
  // Returns the place for results from `begin` on. Store() completes them.
  float* To(int64_t begin) { return buffer_.empty() ? floats_ + begin : buffer_.data(); }
  void Store(int64_t begin, int64_t count);

 private:
  float* const floats_;
  BFloat16* const elements_;   // the same tensor in bfloat16
  std::vector<float> buffer_;  // empty for float32
};

}  // namespace shoal::cpu
