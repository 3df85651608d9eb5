#pragma once

// For loops in plain C++ that the compiler turns into vector code.

// Goes before a function: compiles it for several instruction sets. The best one is chosen at
// program start. All but the default have FMA: where bits may not depend on the start and the end
// of a loop, the library compiles with -ffp-contract=off (optimizers, codecs). Disabled under
// sanitizers, because their runtime is not ready at the time of the choice.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SHOAL_VECTORIZED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SHOAL_VECTORIZED
#endif

// Inlines a function into its caller, which compiles it for the caller's instruction sets
// (SHOAL_VECTORIZED). The code for an element handles one float. `omp simd` makes the compiler use
// vectors of lanes. GCC's own vector types do not work here: the compiler splits a selection by a
// vector comparison into lanes before it compiles the function for an instruction set.
#define SHOAL_INLINE inline __attribute__((always_inline))
