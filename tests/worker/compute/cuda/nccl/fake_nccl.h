#pragma once

#include <atomic>

// What the stand-in for NCCL takes for a stream, in place of CUDA's; or null.
struct FakeNcclStream {
  std::atomic<int> given = 0, ended = 0;  // sums
};
