#pragma once

// For the loops of optimizers: plain C++ that the compiler turns into vector code.

// Goes before a function: compiles it for several instruction sets; the program chooses the best
// one when it starts. Not under sanitizers: their runtime is not ready when the choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHOAL_VECTORIZE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHOAL_VECTORIZE
#endif

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
