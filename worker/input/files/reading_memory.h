#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/input/files/memory_budget.h"

namespace shoal {

// Threads for a data set whose examples are work to read: as many as there are cores, within
// limits.
inline constexpr int kMostReadingThreads = 4;
int ReadingThreads();

// The memory in which the threads that read a data set hold and decode its examples: no more than
// kMostBytes, whatever is in the files and however many threads there are.
struct ReadingMemory {
  // A file or record of more is damaged, and so is a picture that takes more to decode.
  static constexpr uint64_t kMostEncoded = uint64_t{128} << 20;
  static constexpr uint64_t kMostDecoding = uint64_t{256} << 20;
  // What a thread keeps of each kind for its next example; that is taken from no budget.
  static constexpr uint64_t kMostKept = uint64_t{8} << 20;
  // Those threads, and the one that computes, which reads what none of them has begun.
  static constexpr uint64_t kMostBytes =
      kMostEncoded + kMostDecoding + (kMostReadingThreads + 1) * 2 * kMostKept;

  // Who holds a piece of `encoded` may take one of `decoding`, not the other way round.
  MemoryBudget encoded{kMostEncoded};
  MemoryBudget decoding{kMostDecoding};
};

// The bytes of a file or record while they are read: memory that the thread keeps, or, where they
// are many, a piece of the budget. Of a thread, one at a time keeps its memory.
class EncodedBytes {
 public:
  explicit EncodedBytes(ReadingMemory* memory);
  ~EncodedBytes();
  EncodedBytes(const EncodedBytes&) = delete;
  EncodedBytes& operator=(const EncodedBytes&) = delete;

  // Becomes `size` bytes, of any values. kDataLoss where they are more than kMostEncoded; an error
  // where there is no memory. `name` is for messages.
  absl::Status Resize(uint64_t size, const std::string& name);
  std::span<uint8_t> bytes() { return bytes_; }
  // What it holds: no more than kMostKept beyond what it has taken from the budget.
  uint64_t held_bytes() const { return bytes_.capacity(); }

 private:
  ReadingMemory& memory_;
  MemoryBudget::Piece piece_;
  std::vector<uint8_t> bytes_;
};

}  // namespace shoal
