#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace shoal {

// Gives memory back that the allocator keeps (transport_tuning.h) after a burst. It trims if more
// than kMaxFreeBytes were free in each check of a minute. It keeps memory that each step of a job
// takes and frees again. Not thread-safe.
class MemoryTrim {
 public:
  static constexpr size_t kMaxFreeBytes = size_t{256} << 20;
  static constexpr int kChecks = 6;

  struct Options {
    // Returns the free bytes of the heap, of which the kernel may have some back already.
    std::function<size_t()> free_bytes = FreeHeapBytes;
    std::function<void()> trim = TrimHeap;
  };
  explicit MemoryTrim(Options options) : options_(std::move(options)) {}

  // Checks the heap and trims it if needed. Call it every ten seconds.
  void Check();

  static size_t FreeHeapBytes();
  static void TrimHeap();

 private:
  const Options options_;
  int checks_ = 0;  // consecutive checks with more than kMaxFreeBytes
};

}  // namespace shoal
