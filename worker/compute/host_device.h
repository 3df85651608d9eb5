#pragma once

// Marks what both the host and the devices of CUDA call; compilers other than nvcc see nothing.
#ifdef __CUDACC__
#define SHOAL_HOST_DEVICE __host__ __device__
#else
#define SHOAL_HOST_DEVICE
#endif

// Before a loop of a constant number of rounds, each of which a device is to have as code of its
// own: what they keep in an array has then registers, not memory.
#ifdef __CUDA_ARCH__
#define SHOAL_UNROLL _Pragma("unroll")
#else
#define SHOAL_UNROLL
#endif
