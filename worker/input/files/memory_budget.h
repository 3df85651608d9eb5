#pragma once

#include <cstdint>
#include <utility>

#include "common/base/mutex.h"

namespace shoal {

// So many bytes of memory, of which threads take and give back; who finds too few left waits, in
// the order of asking. Thread-safe; outlives its pieces.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : total_(bytes), left_(bytes) {}

  // A piece of a budget, given back with the object.
  class Piece {
   public:
    Piece() = default;
    Piece(Piece&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Piece& operator=(Piece&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Piece();

   private:
    friend class MemoryBudget;
    Piece(MemoryBudget* budget, uint64_t bytes) : budget_(budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    uint64_t bytes_ = 0;
  };

  // Waits until so many are left; for more than there are in all, until all are. A thread that
  // holds a piece takes no other of the same budget.
  Piece Take(uint64_t bytes);

 private:
  const uint64_t total_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t left_ ABSL_GUARDED_BY(mutex_);
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;   // how many have asked for a piece
  uint64_t served_ ABSL_GUARDED_BY(mutex_) = 0;  // how many of them have it
};

}  // namespace shoal
