#pragma once

#include <atomic>

// The stream type of the NCCL fake, instead of CUDA's. May be null.
struct FakeNcclStream {
  std::atomic<int> given = 0, ended = 0;  // numbers of sums
};
