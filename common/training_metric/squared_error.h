#pragma once

#include <span>

namespace shoal {

// The mean of (p - t)^2; `target` has as many elements as `prediction`.
inline double MeanOfSquaredErrors(std::span<const float> prediction, const float* target) {
  double sum = 0;
  for (size_t i = 0; i < prediction.size(); ++i) {
    const double p = prediction[i], t = target[i];
    sum += (p - t) * (p - t);
  }
  return sum / static_cast<double>(prediction.size());
}

}  // namespace shoal
