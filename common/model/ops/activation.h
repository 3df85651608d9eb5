#pragma once

#include "common/model/op.h"

namespace shoal {

// Keras 3's activations of single elements; gelu is the exact one. relu: max_value < 0 means none.
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
  double threshold = 0;       // relu; of the shrinking ones 0.5 in Keras
  double slope = 1.0 / 6;     // hard sigmoid
};

// (x) -> f(x)
struct ActivationOp : Op {
  ActivationAttributes attributes;
  SHOAL_OP(Activation);
  // The bare relu is a maximum; what has numbers of its own makes floats.
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
