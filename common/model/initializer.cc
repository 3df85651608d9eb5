#include "common/model/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/base/check.h"
#include "common/model/name_hash.h"

namespace shoal {
namespace {

// Standard deviation of a standard normal distribution truncated at two deviations. Keras divides
// by it, which gives the drawn values the requested deviation.
constexpr double kTruncatedNormalStddev = 0.87962566103423978;

// The finalizer of SplitMix64: spreads each bit of `x` over all bits.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Random numbers by position: the n-th draw at an index is a function of (key, index, n) alone.
class RandomField {
 public:
  RandomField(uint64_t job_seed, const std::string& name, int64_t initializer_seed) {
    key_ = Mix(Mix(job_seed + kIncrement) ^ HashName(name));
    key_ = Mix(key_ + static_cast<uint64_t>(initializer_seed));
  }

  // Uniform in [0, 1).
  double Uniform(int64_t index, int draw = 0) const {
    const uint64_t row = Mix(key_ + kIncrement * static_cast<uint64_t>(index));
    return static_cast<double>(Mix(row + kIncrement * static_cast<uint64_t>(draw + 1)) >> 11) *
           0x1p-53;
  }

  // Standard normal, by Box and Muller's transform. Uses draws 2 * draw and 2 * draw + 1.
  double Normal(int64_t index, int draw = 0) const {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(index, 2 * draw)));
    return radius * std::cos(2 * std::numbers::pi * Uniform(index, 2 * draw + 1));
  }

  // Standard normal, drawn again until it is within two deviations.
  double TruncatedNormal(int64_t index) const {
    for (int draw = 0;; ++draw) {
      const double value = Normal(index, draw);
      if (std::abs(value) <= 2) return value;
    }
  }

 private:
  static constexpr uint64_t kIncrement = 0x9e3779b97f4a7c15;
  uint64_t key_;
};

// Keras's compute_fans: a convolution's fans count its receptive field, all axes but the last two.
double Fan(const Shape& shape, Initializer::FanMode mode) {
  double fan_in = 1;
  double fan_out = 1;
  if (shape.size() == 1) {
    fan_in = fan_out = static_cast<double>(shape[0]);
  } else if (shape.size() > 1) {
    double receptive_field = 1;
    for (size_t i = 0; i + 2 < shape.size(); ++i) receptive_field *= static_cast<double>(shape[i]);
    fan_in = receptive_field * static_cast<double>(shape[shape.size() - 2]);
    fan_out = receptive_field * static_cast<double>(shape.back());
  }
  switch (mode) {
    case Initializer::FanMode::kFanIn:
      return fan_in;
    case Initializer::FanMode::kFanOut:
      return fan_out;
    case Initializer::FanMode::kFanAvg:
      return (fan_in + fan_out) / 2;
  }
  return fan_in;
}

// Turns variance scaling into the plain distribution for this shape.
Initializer Resolve(const Initializer& initializer, const Shape& shape) {
  if (initializer.kind != Initializer::Kind::kVarianceScaling) return initializer;
  const double variance = initializer.a / std::max(1.0, Fan(shape, initializer.fan_mode));
  Initializer plain;
  switch (initializer.distribution) {
    case Initializer::Distribution::kUniform:
      plain.kind = Initializer::Kind::kUniform;
      plain.b = std::sqrt(3 * variance);
      plain.a = -plain.b;
      break;
    case Initializer::Distribution::kTruncatedNormal:
      plain.kind = Initializer::Kind::kTruncatedNormal;
      plain.b = std::sqrt(variance) / kTruncatedNormalStddev;
      break;
    case Initializer::Distribution::kUntruncatedNormal:
      plain.kind = Initializer::Kind::kNormal;
      plain.b = std::sqrt(variance);
      break;
  }
  return plain;
}

// Scalar product in eight lanes. The compiler can keep them in vector registers.
double Dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, 8> lanes = {};
  size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The orthogonal factor of a random normal matrix with `length` rows and `count` <= length columns,
// stored column after column. Its R has a positive diagonal; Keras reaches this by flipping signs.
// Modified Gram-Schmidt loses orthogonality in proportion to the condition number, which is about
// `count` here. In double this loss is too small to show in a float.
std::vector<double> OrthogonalColumns(const RandomField& random, int64_t length, int64_t count) {
  std::vector<double> columns(length * count);
  for (int64_t i = 0; i < length * count; ++i) columns[i] = random.Normal(i);
  for (int64_t k = 0; k < count; ++k) {
    const std::span<double> column(columns.data() + k * length, length);
    const double norm = std::sqrt(Dot(column, column));
    for (double& value : column) value /= norm;
    for (int64_t j = k + 1; j < count; ++j) {
      const std::span<double> other(columns.data() + j * length, length);
      const double projection = Dot(column, other);
      for (int64_t i = 0; i < length; ++i) other[i] -= projection * column[i];
    }
  }
  return columns;
}

// Computes the whole matrix for any part of it, because its rows depend on each other.
void FillOrthogonal(double gain, const RandomField& random, const Shape& shape, int64_t begin,
                    std::span<float> out) {
  const int64_t columns = shape.back();
  const int64_t rows = ElementCount(shape) / columns;
  const int64_t length = std::max(rows, columns);
  const std::vector<double> q = OrthogonalColumns(random, length, std::min(rows, columns));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t row = (begin + static_cast<int64_t>(i)) / columns;
    const int64_t column = (begin + static_cast<int64_t>(i)) % columns;
    const double value = rows >= columns ? q[column * length + row] : q[row * length + column];
    out[i] = static_cast<float>(gain * value);
  }
}

}  // namespace

void InitializeRows(const Initializer& initializer, const std::string& variable_name,
                    const Shape& shape, uint64_t job_seed, int64_t row_begin, int64_t row_end,
                    std::span<float> out) {
  const int64_t row_elements =
      shape.empty() ? 1 : ElementCount(Shape(shape.begin() + 1, shape.end()));
  SHOAL_CHECK(static_cast<int64_t>(out.size()) == (row_end - row_begin) * row_elements,
              variable_name);
  if (row_end <= row_begin || out.empty()) return;
  const int64_t begin = row_begin * row_elements;  // flat index of out[0]
  const RandomField random(job_seed, variable_name, initializer.seed);
  const Initializer plain = Resolve(initializer, shape);
  const auto fill = [&](auto value_at) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(value_at(begin + static_cast<int64_t>(i)));
    }
  };
  switch (plain.kind) {
    case Initializer::Kind::kConstant:
      std::fill(out.begin(), out.end(), static_cast<float>(plain.a));
      break;
    case Initializer::Kind::kUniform:
      fill([&](int64_t i) { return plain.a + (plain.b - plain.a) * random.Uniform(i); });
      break;
    case Initializer::Kind::kNormal:
      fill([&](int64_t i) { return plain.a + plain.b * random.Normal(i); });
      break;
    case Initializer::Kind::kTruncatedNormal:
      fill([&](int64_t i) { return plain.a + plain.b * random.TruncatedNormal(i); });
      break;
    case Initializer::Kind::kOrthogonal:
      FillOrthogonal(plain.a, random, shape, begin, out);
      break;
    case Initializer::Kind::kIdentity:
      fill([&](int64_t i) { return i / shape.back() == i % shape.back() ? plain.a : 0.0; });
      break;
    case Initializer::Kind::kFourier:
      FillFourierKernel(*plain.fourier, shape, begin, out);
      break;
    case Initializer::Kind::kVarianceScaling:
      SHOAL_CHECK(false, "Resolve() leaves none");
  }
}

}  // namespace shoal
