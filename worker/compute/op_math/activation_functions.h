#pragma once

#include <algorithm>
#include <cmath>

#include "common/model/ops/activation.h"
#include "worker/compute/op_math/host_device.h"

namespace shoal {

// Keras's activations (keras.activations), one element at a time. Not-a-number in gives
// not-a-number out, so that a ruined model shows. Minus infinity gives what Keras computes.
template <typename Scalar>
SHOAL_HOST_DEVICE Scalar Activate(const ActivationAttributes& attributes, Scalar x) {
  using Kind = ActivationAttributes::Kind;
  const Scalar slope = static_cast<Scalar>(attributes.negative_slope);
  switch (attributes.kind) {
    case Kind::kRelu: {
      const Scalar threshold = static_cast<Scalar>(attributes.threshold);
      const Scalar max_value = static_cast<Scalar>(attributes.max_value);
      // Without a slope 0 for minus infinity, too, whose product with 0 is not a number.
      if (x <= threshold) return slope == 0 ? Scalar(0) : slope * (x - threshold);
      return max_value >= 0 && x > max_value ? max_value : x;
    }
    case Kind::kLeakyRelu:
      return x > 0 ? x : slope * x;
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kElu:
      return x > 0 ? x : slope * std::expm1(x);
    case Kind::kSelu:
      return Scalar(1.0507009873554805) * (x > 0 ? x : Scalar(1.6732632423543772) * std::expm1(x));
    case Kind::kSoftplus:
      return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x)));
    case Kind::kSoftsign:
      return x / (1 + std::abs(x));
    case Kind::kSilu:
      return x / (1 + std::exp(-x));
    case Kind::kGelu:
      return x / 2 * (1 + std::erf(x * Scalar(0.7071067811865476)));
    case Kind::kExponential:
      return std::exp(x);
    case Kind::kHardSigmoid:
      return std::clamp(x * static_cast<Scalar>(attributes.slope) + Scalar(0.5), Scalar(0),
                        Scalar(1));
    case Kind::kHardSilu:
      return x * std::clamp(x / 6 + Scalar(0.5), Scalar(0), Scalar(1));
    case Kind::kHardTanh:
      return std::clamp(x, Scalar(-1), Scalar(1));
    case Kind::kHardShrink:
      return std::abs(x) <= static_cast<Scalar>(attributes.threshold) ? 0 : x;
    case Kind::kSoftShrink: {
      const Scalar threshold = static_cast<Scalar>(attributes.threshold);
      return std::abs(x) <= threshold ? 0 : x - std::copysign(threshold, x);
    }
    case Kind::kTanhShrink:
      return x - std::tanh(x);
    case Kind::kLogSigmoid:
      return (x < 0 ? x : 0) - std::log1p(std::exp(-std::abs(x)));
    case Kind::kMish:
      return x * std::tanh((x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))));
    case Kind::kSquareplus:
      return (x + std::sqrt(x * x + 4)) / 2;
    case Kind::kSparsePlus:
      return x <= -1 ? 0 : x >= 1 ? x : (x + 1) * (x + 1) / 4;
  }
  return x;
}

// The derivative at x, where y = Activate(x).
template <typename Scalar>
SHOAL_HOST_DEVICE Scalar ActivationDerivative(const ActivationAttributes& attributes, Scalar x,
                                              Scalar y) {
  using Kind = ActivationAttributes::Kind;
  const Scalar slope = static_cast<Scalar>(attributes.negative_slope);
  switch (attributes.kind) {
    case Kind::kRelu: {
      const Scalar max_value = static_cast<Scalar>(attributes.max_value);
      if (x <= static_cast<Scalar>(attributes.threshold)) return slope;
      return max_value >= 0 && x >= max_value ? 0 : 1;
    }
    case Kind::kLeakyRelu:
      return x > 0 ? 1 : slope;
    case Kind::kTanh:
      return 1 - y * y;
    case Kind::kSigmoid:
      return y * (1 - y);
    case Kind::kElu:
      return x > 0 ? 1 : y + slope;
    case Kind::kSelu:
      return x > 0 ? Scalar(1.0507009873554805) : y + Scalar(1.7580993408473766);
    case Kind::kSoftplus:
      return 1 / (1 + std::exp(-x));
    case Kind::kSoftsign:
      return 1 / ((1 + std::abs(x)) * (1 + std::abs(x)));
    case Kind::kSilu: {
      const Scalar sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
    case Kind::kGelu:
      return (1 + std::erf(x * Scalar(0.7071067811865476))) / 2 +
             x * Scalar(0.3989422804014327) * std::exp(-x * x / 2);
    case Kind::kExponential:
      return y;
    case Kind::kHardSigmoid:
      // NOLINTNEXTLINE(misc-redundant-expression): `y` is no integer
      return 0 < y && y < 1 ? static_cast<Scalar>(attributes.slope) : 0;
    case Kind::kHardSilu:
      return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + Scalar(0.5);
    case Kind::kHardTanh:
      return x > -1 && x < 1 ? 1 : 0;
    case Kind::kHardShrink:
    case Kind::kSoftShrink:
      return std::abs(x) <= static_cast<Scalar>(attributes.threshold) ? 0 : 1;
    case Kind::kTanhShrink: {
      // Not x - y: that is 0 for large x and not-a-number for infinity.
      const Scalar tanh = std::tanh(x);
      return tanh * tanh;
    }
    case Kind::kLogSigmoid:
      return 1 / (1 + std::exp(x));
    case Kind::kMish: {
      const Scalar tanh = std::tanh((x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))));
      return tanh + x * (1 - tanh * tanh) / (1 + std::exp(-x));
    }
    case Kind::kSquareplus:
      return (1 + x / std::sqrt(x * x + 4)) / 2;
    case Kind::kSparsePlus:
      return x <= -1 ? 0 : x >= 1 ? 1 : (x + 1) / 2;
  }
  return 1;
}

}  // namespace shoal
