#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/input/files/memory_budget.h"

namespace shoal {

// The number of threads for a data set whose examples need work to read: the number of cores, at
// most kMaxReadingThreads.
inline constexpr int kMaxReadingThreads = 4;
int ReadingThreads();

// The memory in which the threads that read a data set hold and decode its examples. At most
// kMaxBytes, for any files and any number of threads.
struct ReadingMemory {
  // A larger file or record counts as damaged, and so does a picture that needs more to decode.
  static constexpr uint64_t kMaxEncoded = uint64_t{128} << 20;
  static constexpr uint64_t kMaxDecoding = uint64_t{256} << 20;
  // Max memory of each kind that a thread keeps for its next example. No budget counts it.
  static constexpr uint64_t kMaxKept = uint64_t{8} << 20;
  // Includes the reading threads, and the computing thread, which reads batches that none of them
  // began.
  static constexpr uint64_t kMaxBytes =
      kMaxEncoded + kMaxDecoding + (kMaxReadingThreads + 1) * 2 * kMaxKept;

  // A thread that holds a piece of `encoded` may take one of `decoding`, but not the reverse.
  MemoryBudget encoded{kMaxEncoded};
  MemoryBudget decoding{kMaxDecoding};
};

// The bytes of a file or record during reading. They are in memory that the thread keeps, or, if
// large, in a piece of the budget. At most one object of a thread at a time uses the kept memory.
class EncodedBytes {
 public:
  explicit EncodedBytes(ReadingMemory* memory);
  ~EncodedBytes();
  EncodedBytes(const EncodedBytes&) = delete;
  EncodedBytes& operator=(const EncodedBytes&) = delete;

  // Resizes to `size` bytes with undefined values. Returns kDataLoss for more than kMaxEncoded
  // bytes, and an error if there is no memory. `name` is for messages.
  absl::Status Resize(uint64_t size, const std::string& name);
  std::span<uint8_t> bytes() { return bytes_; }
  // The held bytes: at most kMaxKept more than the piece of the budget.
  uint64_t held_bytes() const { return bytes_.capacity(); }

 private:
  ReadingMemory& memory_;
  MemoryBudget::Piece piece_;
  std::vector<uint8_t> bytes_;
};

}  // namespace shoal
