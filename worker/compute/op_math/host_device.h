#pragma once

// Marks functions that both the host and CUDA devices call. Compilers other than nvcc see nothing.
#ifdef __CUDACC__
#define SHOAL_HOST_DEVICE __host__ __device__
#else
#define SHOAL_HOST_DEVICE
#endif

// Goes before a loop with a constant number of rounds, to unroll it on a device. Arrays that the
// rounds index then lie in registers, not in memory.
#ifdef __CUDA_ARCH__
#define SHOAL_UNROLL _Pragma("unroll")
#else
#define SHOAL_UNROLL
#endif
