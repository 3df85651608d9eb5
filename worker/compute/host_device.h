#pragma once

// Marks what both the host and the devices of CUDA call; compilers other than nvcc see nothing.
#ifdef __CUDACC__
#define SHOAL_HOST_DEVICE __host__ __device__
#else
#define SHOAL_HOST_DEVICE
#endif
