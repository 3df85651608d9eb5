#pragma once

#include "common/model/op.h"

namespace shoal {

// (x) -> f(x), element by element. Activations of layers are ActivationOps instead.
struct UnaryOp : Op {
  enum class Kind {
    kExp,
    kLog,
    kAbs,
    kSign,  // sign of 0 is 0; no gradient
    kSquare,
    kSquareRoot,
    kPower,   // x ^ exponent
    kClip,    // the nearest number in [low, high]
    kInside,  // 1 where x is in ]low, high[, 0.5 at the ends, else 0: the derivative of kClip
  };
  Kind kind = Kind::kSquare;
  double exponent = 1;
  double low = 0;
  double high = 0;
  SHOAL_OP(Unary);
  absl::Status Gradient(GradientBuilder& builder) const override;
};

}  // namespace shoal
