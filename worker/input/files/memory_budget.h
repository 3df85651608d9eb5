#pragma once

#include <cstdint>
#include <utility>

#include "common/base/mutex.h"

namespace shoal {

// A fixed number of bytes of memory that threads share. A thread that finds too few waits, in the
// order of requests. Thread-safe. It must outlive its pieces.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : total_(bytes), left_(bytes) {}

  // A piece of a budget. The destructor returns it.
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

  // Waits until this many bytes are left, or the whole budget if `bytes` is more. Requires that the
  // thread holds no other piece of this budget.
  Piece Take(uint64_t bytes);

 private:
  const uint64_t total_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t left_ ABSL_GUARDED_BY(mutex_);
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;   // number of requests
  uint64_t served_ ABSL_GUARDED_BY(mutex_) = 0;  // number of served requests
};

}  // namespace shoal
