#include "worker/compute/cpu/activation_loops.h"

#include <cmath>

#include "worker/compute/cpu/vector_math.h"
#include "worker/compute/op_math/activation_functions.h"

// The formulas of op_math/activation_functions.h without branches. Each kind has a loop of its own.

namespace shoal::cpu {
namespace {

using Kind = ActivationAttributes::Kind;

constexpr float kSeluScale = 1.0507009873554805f;
constexpr float kSeluAlpha = 1.6732632423543772f;

// tanh(log(1 + e)) = ((1 + e)^2 - 1) / ((1 + e)^2 + 1), where e = exp(x). It is 1 from x = 20 on.
struct MishParts {
  float e;
  float tanh;
};
SHOAL_INLINE MishParts SplitMish(float x) {
  const float e = Exp(Select(x > 20, 20, x));
  const float n = e * (e + 2);
  return {e, n / (n + 2)};
}

struct ActivationNumbers {
  float slope;
  float threshold;
};

template <Kind kind>
SHOAL_INLINE float Activated(const ActivationNumbers& numbers, float x) {
  if constexpr (kind == Kind::kSelu) {
    return kSeluScale * Select(x > 0, x, kSeluAlpha * ExpMinusOne(x));
  } else if constexpr (kind == Kind::kSoftsign) {
    return x / (1 + std::abs(x));
  } else if constexpr (kind == Kind::kHardSigmoid) {
    return Within(x * numbers.slope + 0.5f, 0, 1);
  } else if constexpr (kind == Kind::kHardSilu) {
    return x * Within(x / 6 + 0.5f, 0, 1);
  } else if constexpr (kind == Kind::kHardTanh) {
    return Within(x, -1, 1);
  } else if constexpr (kind == Kind::kHardShrink) {
    return Select(std::abs(x) <= numbers.threshold, 0, x);
  } else if constexpr (kind == Kind::kSoftShrink) {
    const float shrunk = x - std::copysign(numbers.threshold, x);
    return Select(std::abs(x) <= numbers.threshold, 0, shrunk);
  } else if constexpr (kind == Kind::kTanhShrink) {
    return Select(std::abs(x) < kTanhIsSmall, -SmallTanhRest(x), x - LargeTanh(x));
  } else if constexpr (kind == Kind::kLogSigmoid) {
    return Select(x < 0, x, 0) - LogOnePlus(Exp(-std::abs(x)));
  } else if constexpr (kind == Kind::kMish) {
    return x * SplitMish(x).tanh;
  } else if constexpr (kind == Kind::kSquareplus) {
    return (x + std::sqrt(x * x + 4)) / 2;
  } else {
    static_assert(kind == Kind::kSparsePlus);
    return Select(x <= -1, 0, Select(x >= 1, x, (x + 1) * (x + 1) * 0.25f));
  }
}

template <Kind kind>
SHOAL_INLINE float Derivative(const ActivationNumbers& numbers, float x, float y) {
  if constexpr (kind == Kind::kSelu) {
    return Select(x > 0, kSeluScale, y + kSeluScale * kSeluAlpha);
  } else if constexpr (kind == Kind::kSoftsign) {
    return 1 / ((1 + std::abs(x)) * (1 + std::abs(x)));
  } else if constexpr (kind == Kind::kHardSigmoid) {
    return Select((y > 0) & (y < 1), numbers.slope, 0);
  } else if constexpr (kind == Kind::kHardSilu) {
    return Select(x <= -3, 0, Select(x >= 3, 1, x / 3 + 0.5f));
  } else if constexpr (kind == Kind::kHardTanh) {
    return Select((x > -1) & (x < 1), 1, 0);
  } else if constexpr (kind == Kind::kHardShrink || kind == Kind::kSoftShrink) {
    return Select(std::abs(x) <= numbers.threshold, 0, 1);
  } else if constexpr (kind == Kind::kTanhShrink) {
    // Not x - y, which is 0 for large x.
    const float tanh = Select(std::abs(x) < kTanhIsSmall, x + SmallTanhRest(x), LargeTanh(x));
    return tanh * tanh;
  } else if constexpr (kind == Kind::kLogSigmoid) {
    return 1 / (1 + Exp(x));
  } else if constexpr (kind == Kind::kMish) {
    const MishParts mish = SplitMish(x);
    return mish.tanh + x * (1 - mish.tanh * mish.tanh) * (mish.e / (1 + mish.e));
  } else if constexpr (kind == Kind::kSquareplus) {
    return (1 + x / std::sqrt(x * x + 4)) / 2;
  } else {
    static_assert(kind == Kind::kSparsePlus);
    return Select(x <= -1, 0, Select(x >= 1, 1, (x + 1) * 0.5f));
  }
}

template <Kind kind, typename Element>
SHOAL_INLINE void ForwardLoop(const ActivationNumbers numbers, const Element* x, int64_t count,
                              Element* y) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] = FromFloat<Element>(Activated<kind>(numbers, ToFloat(x[i])));
  }
}
template <Kind kind, typename Element>
SHOAL_INLINE void BackwardLoop(const ActivationNumbers numbers, const Element* x, const Element* y,
                               const Element* dy, int64_t count, Element* dx) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = FromFloat<Element>(ToFloat(dy[i]) *
                               Derivative<kind>(numbers, ToFloat(x[i]), ToFloat(y[i])));
  }
}

ActivationNumbers NumbersOf(const ActivationAttributes& attributes) {
  return {static_cast<float>(attributes.slope), static_cast<float>(attributes.threshold)};
}

// The kinds with a loop.
#define SHOAL_FOR_EACH_LOOP(KIND) \
  KIND(kSelu)                     \
  KIND(kSoftsign)                 \
  KIND(kHardSigmoid)              \
  KIND(kHardSilu)                 \
  KIND(kHardTanh)                 \
  KIND(kHardShrink)               \
  KIND(kSoftShrink)               \
  KIND(kTanhShrink)               \
  KIND(kLogSigmoid)               \
  KIND(kMish)                     \
  KIND(kSquareplus)               \
  KIND(kSparsePlus)

// Return whether there is a loop for the kind.
template <typename Element>
SHOAL_INLINE bool ForwardLoopOf(Kind kind, const ActivationNumbers& numbers, const Element* x,
                                int64_t count, Element* y) {
  switch (kind) {
#define KIND(NAME)                                 \
  case Kind::NAME:                                 \
    ForwardLoop<Kind::NAME>(numbers, x, count, y); \
    return true;
    SHOAL_FOR_EACH_LOOP(KIND)
#undef KIND
    default:
      return false;
  }
}

SHOAL_VECTORIZED bool RunForwardLoop(Kind kind, const ActivationNumbers& numbers, const float* x,
                                     int64_t count, float* y) {
  return ForwardLoopOf(kind, numbers, x, count, y);
}
SHOAL_VECTORIZED bool RunForwardLoop(Kind kind, const ActivationNumbers& numbers, const BFloat16* x,
                                     int64_t count, BFloat16* y) {
  return ForwardLoopOf(kind, numbers, x, count, y);
}

template <typename Element>
SHOAL_INLINE bool BackwardLoopOf(Kind kind, const ActivationNumbers& numbers, const Element* x,
                                 const Element* y, const Element* dy, int64_t count, Element* dx) {
  switch (kind) {
#define KIND(NAME)                                          \
  case Kind::NAME:                                          \
    BackwardLoop<Kind::NAME>(numbers, x, y, dy, count, dx); \
    return true;
    SHOAL_FOR_EACH_LOOP(KIND)
#undef KIND
    default:
      return false;
  }
}

SHOAL_VECTORIZED bool RunBackwardLoop(Kind kind, const ActivationNumbers& numbers, const float* x,
                                      const float* y, const float* dy, int64_t count, float* dx) {
  return BackwardLoopOf(kind, numbers, x, y, dy, count, dx);
}
SHOAL_VECTORIZED bool RunBackwardLoop(Kind kind, const ActivationNumbers& numbers,
                                      const BFloat16* x, const BFloat16* y, const BFloat16* dy,
                                      int64_t count, BFloat16* dx) {
  return BackwardLoopOf(kind, numbers, x, y, dy, count, dx);
}

#undef SHOAL_FOR_EACH_LOOP

template <typename Element>
void ActivateElements(const ActivationAttributes& attributes, const Element* x, int64_t count,
                      Element* y) {
  if (RunForwardLoop(attributes.kind, NumbersOf(attributes), x, count, y)) return;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = FromFloat<Element>(Activate(attributes, ToFloat(x[i])));
  }
}

template <typename Element>
void ActivateElementsBackward(const ActivationAttributes& attributes, const Element* x,
                              const Element* y, const Element* dy, int64_t count, Element* dx) {
  if (RunBackwardLoop(attributes.kind, NumbersOf(attributes), x, y, dy, count, dx)) return;
  for (int64_t i = 0; i < count; ++i) {
    dx[i] = FromFloat<Element>(ToFloat(dy[i]) *
                               ActivationDerivative(attributes, ToFloat(x[i]), ToFloat(y[i])));
  }
}

}  // namespace

void ActivateLoop(const ActivationAttributes& attributes, const float* x, int64_t count, float* y) {
  ActivateElements(attributes, x, count, y);
}
void ActivateLoop(const ActivationAttributes& attributes, const BFloat16* x, int64_t count,
                  BFloat16* y) {
  ActivateElements(attributes, x, count, y);
}

void ActivateBackwardLoop(const ActivationAttributes& attributes, const float* x, const float* y,
                          const float* dy, int64_t count, float* dx) {
  ActivateElementsBackward(attributes, x, y, dy, count, dx);
}
void ActivateBackwardLoop(const ActivationAttributes& attributes, const BFloat16* x,
                          const BFloat16* y, const BFloat16* dy, int64_t count, BFloat16* dx) {
  ActivateElementsBackward(attributes, x, y, dy, count, dx);
}

}  // namespace shoal::cpu
