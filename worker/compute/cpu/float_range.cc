#include "worker/compute/cpu/float_range.h"

namespace shoal::cpu {
namespace {

SHOAL_VECTORIZED void LoadLoop(const BFloat16* x, int64_t count, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = ToFloat(x[i]);
}
SHOAL_VECTORIZED void StoreLoop(const float* x, int64_t count, BFloat16* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = FromFloat<BFloat16>(x[i]);
}

}  // namespace

FloatRange::FloatRange(const LoopTensors& data, size_t i, ComputeDtype type, int64_t max_count)
    : floats_(data.At<float>(i)),
      elements_(data.At<BFloat16>(i)),
      buffer_(type == ComputeDtype::kBfloat16 ? max_count : 0) {}

const float* FloatRange::Load(int64_t begin, int64_t count) {
  if (buffer_.empty()) return floats_ + begin;
  LoadLoop(elements_ + begin, count, buffer_.data());
  return buffer_.data();
}

void FloatRange::Store(int64_t begin, int64_t count) {
  if (!buffer_.empty()) StoreLoop(buffer_.data(), count, elements_ + begin);
}

}  // namespace shoal::cpu
