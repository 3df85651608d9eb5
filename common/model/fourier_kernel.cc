#include "common/model/fourier_kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/check.h"

namespace shoal {
namespace {

constexpr double kPi = std::numbers::pi;

// A window of scipy.signal.windows. `at` returns the value at point `n` of `length` points, length
// > 1.
struct NamedWindow {
  const char* name;
  double (*at)(int64_t n, int64_t length);
};

// The position of point n: 0 at the first point, 1 at the last.
double Share(int64_t n, int64_t length) {
  return static_cast<double>(n) / static_cast<double>(length - 1);
}

// The sum of a[k] cos(k x), x from -pi to pi (scipy's general_cosine).
double CosineSum(std::initializer_list<double> a, int64_t n, int64_t length) {
  const double x = kPi * (2 * Share(n, length) - 1);
  double sum = 0;
  int k = 0;
  for (const double factor : a) sum += factor * std::cos(k++ * x);
  return sum;
}

double Bohman(int64_t n, int64_t length) {
  if (n == 0 || n == length - 1) return 0;
  const double x = std::abs(2 * Share(n, length) - 1);
  return (1 - x) * std::cos(kPi * x) + std::sin(kPi * x) / kPi;
}

double Triangle(int64_t n, int64_t length) {
  const auto from_side = static_cast<double>(std::min(n, length - 1 - n));
  const auto points = static_cast<double>(length);
  return length % 2 == 0 ? (2 * from_side + 1) / points : 2 * (from_side + 1) / (points + 1);
}

constexpr NamedWindow kWindows[] = {
    {"bartlett", [](int64_t n, int64_t l) { return 1 - std::abs(2 * Share(n, l) - 1); }},
    {"blackman",
     [](int64_t n, int64_t l) {
       return CosineSum({0.42, 0.5, 0.08}, n, l);
     }},
    {"blackmanharris",
     [](int64_t n, int64_t l) {
       return CosineSum({0.35875, 0.48829, 0.14128, 0.01168}, n, l);
     }},
    {"bohman", Bohman},
    {"boxcar", [](int64_t, int64_t) { return 1.0; }},
    {"cosine",
     [](int64_t n, int64_t l) {
       return std::sin(kPi * (static_cast<double>(n) + 0.5) / static_cast<double>(l));
     }},
    {"flattop",
     [](int64_t n, int64_t l) {
       return CosineSum({0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368}, n, l);
     }},
    {"hamming",
     [](int64_t n, int64_t l) {
       return CosineSum({0.54, 0.46}, n, l);
     }},
    {"hann",
     [](int64_t n, int64_t l) {
       return CosineSum({0.5, 0.5}, n, l);
     }},
    {"nuttall",
     [](int64_t n, int64_t l) {
       return CosineSum({0.3635819, 0.4891775, 0.1365995, 0.0106411}, n, l);
     }},
    {"triang", Triangle},
};

// The values of the window at `length` points. A periodic window has one point more, of which the
// last is dropped.
std::vector<double> WindowOf(const FourierKernel& kernel, int64_t length) {
  if (!kernel.values.empty()) return kernel.values;
  if (length == 1) return {1};
  std::vector<double> values(length);
  for (const NamedWindow& known : kWindows) {
    if (kernel.window != known.name) continue;
    for (int64_t n = 0; n < length; ++n)
      values[n] = known.at(n, length + (kernel.periodic ? 1 : 0));
    return values;
  }
  SHOAL_CHECK(false, "window ", kernel.window);
}

}  // namespace

std::vector<std::string> FourierWindowNames() {
  std::vector<std::string> names;
  for (const NamedWindow& known : kWindows) names.push_back(known.name);
  return names;
}

void FillFourierKernel(const FourierKernel& kernel, const Shape& shape, int64_t begin,
                       std::span<float> out) {
  const int64_t length = shape[0], frequencies = shape[2];
  std::vector<double> window(length, 1);
  double scale = 1;
  if (!kernel.window.empty() || !kernel.values.empty()) {
    window = WindowOf(kernel, length);
    double sum = 0, squares = 0;
    for (const double value : window) {
      sum += std::abs(value);
      squares += value * value;
    }
    if (kernel.scaling == FourierKernel::Scaling::kDensity) scale = std::sqrt(squares);
    if (kernel.scaling == FourierKernel::Scaling::kSpectrum) scale = sum;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t t = (begin + static_cast<int64_t>(i)) / frequencies;
    const int64_t f = (begin + static_cast<int64_t>(i)) % frequencies;
    // The cosine has period 2 (F - 1) in t f. Taking the remainder first keeps all digits.
    const int64_t period = 2 * (frequencies - 1);
    const double angle =
        -2 * kPi * static_cast<double>(t * f % period) / static_cast<double>(period);
    const double wave = kernel.imaginary ? std::sin(angle) : std::cos(angle);
    out[i] = static_cast<float>(wave * window[t] / scale);
  }
}

}  // namespace shoal
