#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace shoal {

// Gives memory back that the allocator keeps (transport_tuning.h) once a burst is over: what has
// been free for a minute, where that is much. What each step of a job takes and frees again stays.
// Not thread-safe.
class MemoryTrim {
 public:
  static constexpr size_t kMaxFreeBytes = size_t{256} << 20;
  static constexpr int kLooks = 6;

  struct Options {
    // Of the heap; free, and perhaps still there.
    std::function<size_t()> free_bytes = FreeHeapBytes;
    std::function<void()> trim = TrimHeap;
  };
  explicit MemoryTrim(Options options) : options_(std::move(options)) {}

  // To be called every ten seconds.
  void Look();

  static size_t FreeHeapBytes();
  static void TrimHeap();

 private:
  const Options options_;
  int looks_ = 0;  // in a row, at which much was free
};

}  // namespace shoal
