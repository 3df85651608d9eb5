#pragma once

#include "common/model/op.h"

namespace shoal {

// Keras 3's elementwise activations; gelu is the exact form. For relu, max_value < 0 means no max.
struct ActivationAttributes {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kElu,
    kSelu,
    kSoftplus,
    kSoftsign,
    kSilu,
    kGelu,
    kExponential,
    kLeakyRelu,
    kHardSigmoid,  // slope * x + 0.5, from 0 to 1
    kHardSilu,
    kHardTanh,
    kHardShrink,
    kSoftShrink,
    kTanhShrink,
    kLogSigmoid,
    kMish,
    kSquareplus,
    kSparsePlus,
  };
  Kind kind = Kind::kRelu;
  double max_value = -1;      // relu
  double negative_slope = 0;  // relu, leaky relu; alpha of elu
  double threshold = 0;       // relu; hard and soft shrink, with Keras's default 0.5
  double slope = 1.0 / 6;     // hard sigmoid
};

// (x) -> f(x)
struct ActivationOp : Op {
  ActivationAttributes attributes;
  SHOAL_OP(Activation);
  // A relu without attributes is a maximum. Attributes such as a slope turn whole numbers into
  // floats.
  bool KeepsWholeNumbers() const override {
    return attributes.kind == ActivationAttributes::Kind::kHardTanh ||
           (attributes.kind == ActivationAttributes::Kind::kRelu && attributes.max_value < 0 &&
            attributes.negative_slope == 0 && attributes.threshold == 0);
  }
  absl::Status Gradient(GradientBuilder& builder) const override;
};
// (x, y, dy) -> dx
struct ActivationBackwardOp : Op {
  ActivationAttributes attributes;
  SHOAL_OP(ActivationBackward);
};

}  // namespace shoal
