#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/shape.h"

namespace shoal {

// The kernel (T, 1, F) of a convolution that computes one side of a short-time Fourier transform:
//   w(t) cos(-pi t f / (F - 1)), or sin, divided by what the scaling says
// Same as Keras's STFTInitializer (keras/src/initializers/constant_initializers.py), with the
// windows of scipy.signal. Plain data.
struct FourierKernel {
  enum class Scaling { kNone, kDensity, kSpectrum };

  bool imaginary = false;
  std::string window = "hann";      // one of FourierWindowNames(); empty: no window, or `values`
  std::vector<double> values = {};  // a custom window: T values
  Scaling scaling = Scaling::kDensity;
  bool periodic = false;  // for a named window
};

// The names of the known windows, sorted: "hann" and others.
std::vector<std::string> FourierWindowNames();

// Writes elements of the kernel, from flat index `begin` on, into `out`. `shape` is (T, 1, F);
// requires F > 1.
void FillFourierKernel(const FourierKernel& kernel, const Shape& shape, int64_t begin,
                       std::span<float> out);

}  // namespace shoal
