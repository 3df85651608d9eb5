#pragma once

// For the loops of optimizers: plain C++ that the compiler turns into vector code.

#include "common/base/vectorized.h"

// Goes before a loop: no iteration depends on another, even if output and input are the same array.
#if defined(__clang__)
#define SHOAL_INDEPENDENT
#else
#define SHOAL_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace shoal {

// A float at any address, for values in a received message.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));

}  // namespace shoal
