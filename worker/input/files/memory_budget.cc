#include "worker/input/files/memory_budget.h"

#include <algorithm>

namespace shoal {

MemoryBudget::Piece MemoryBudget::Take(uint64_t bytes) {
  bytes = std::min(bytes, total_);
  MutexLock lock(&mutex_);
  const uint64_t turn = asked_++;
  while (served_ != turn || left_ < bytes) changed_.Wait(&mutex_);
  left_ -= bytes;
  ++served_;
  changed_.NotifyAll();
  return Piece(this, bytes);
}

MemoryBudget::Piece::~Piece() {
  if (budget_ == nullptr) return;
  MutexLock lock(&budget_->mutex_);
  budget_->left_ += bytes_;
  budget_->changed_.NotifyAll();
}

}  // namespace shoal
