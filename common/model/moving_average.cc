#include "common/model/moving_average.h"

#include <cstddef>
#include <cstring>

namespace shoal {

void UpdateMovingAverage(double momentum, std::span<const float> sample,
                         std::span<const float> values, std::span<float> out) {
  const auto keep = static_cast<float>(momentum);
  const auto take = static_cast<float>(1 - momentum);
  const auto* const from = reinterpret_cast<const char*>(sample.data());
  for (size_t i = 0; i < out.size(); ++i) {
    float x;
    std::memcpy(&x, from + i * sizeof(float), sizeof(float));
    out[i] = values[i] * keep + x * take;
  }
}

}  // namespace shoal
