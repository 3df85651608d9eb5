#pragma once

// For the loops of optimizers: plain C++ that the compiler turns into vector code.

// Before a function: compiled for several instruction sets, the best one is chosen when the program
// starts. Not under sanitizers, whose runtime is not there yet when the choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHOAL_VECTORIZE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHOAL_VECTORIZE
#endif

// Before a loop: no iteration depends on another one, also when output and input are the same
// array.
#if defined(__clang__)
#define SHOAL_INDEPENDENT
#else
#define SHOAL_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace shoal {

// A float at any address: what lies in a received message.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));

}  // namespace shoal
