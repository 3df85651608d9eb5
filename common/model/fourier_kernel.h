#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/shape.h"

namespace shoal {

// The kernel (T, 1, F) of a convolution that computes one side of a short-time Fourier transform:
//   w(t) cos(-pi t f / (F - 1)), or sin, divided by what the scaling says
// as Keras's STFTInitializer makes it (keras/src/initializers/constant_initializers.py), with the
// windows of scipy.signal. Plain data.
struct FourierKernel {
  enum class Scaling { kNone, kDensity, kSpectrum };

  bool imaginary = false;
  std::string window = "hann";      // one of FourierWindowNames(); empty: none, or `values`
  std::vector<double> values = {};  // a window's own, T of them
  Scaling scaling = Scaling::kDensity;
  bool periodic = false;  // of a window that is named
};

// "hann" and others, sorted.
std::vector<std::string> FourierWindowNames();

// Writes the elements from flat index `begin` of a kernel of that shape, F > 1, into `out`.
void FillFourierKernel(const FourierKernel& kernel, const Shape& shape, int64_t begin,
                       std::span<float> out);

}  // namespace shoal
