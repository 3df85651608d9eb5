#include "worker/step/parameter_arrivals.h"

#include <algorithm>

namespace shoal {

ParameterArrivals::ParameterArrivals(const ShardMap& shard_map, const std::vector<ChunkId>& missing)
    : shard_map_(shard_map), missing_(static_cast<int>(missing.size())) {
  for (const ChunkId& id : missing) {
    for (const ChunkPiece& piece : shard_map.ps(id.ps).chunks[id.chunk].pieces) {
      of_variable_.resize(std::max(of_variable_.size(), size_t{0} + piece.variable + 1));
      ++of_variable_[piece.variable];
    }
  }
}

void ParameterArrivals::Arrived(const ChunkId& id) {
  {
    MutexLock lock(&mutex_);
    --missing_;
    bool whole = missing_ == 0;
    for (const ChunkPiece& piece : shard_map_.ps(id.ps).chunks[id.chunk].pieces)
      whole = --of_variable_[piece.variable] == 0 || whole;
    if (!whole) return;
  }
  arrived_.NotifyAll();
}

void ParameterArrivals::Cancel() {
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  arrived_.NotifyAll();
}

bool ParameterArrivals::all_here() const {
  MutexLock lock(&mutex_);
  return missing_ == 0;
}

absl::Status ParameterArrivals::Await(int variable) {
  MutexLock lock(&mutex_);
  static constexpr int kNone = 0;
  const bool known = variable < static_cast<int>(of_variable_.size());
  return AwaitNone(known ? of_variable_[variable] : kNone);
}

absl::Status ParameterArrivals::AwaitAll() {
  MutexLock lock(&mutex_);
  return AwaitNone(missing_);
}

absl::Status ParameterArrivals::AwaitNone(const int& missing) {
  if (missing > 0 && !cancelled_) {
    if (waiting_++ == 0) waiting_since_ = std::chrono::steady_clock::now();
    while (missing > 0 && !cancelled_) arrived_.Wait(&mutex_);
    if (--waiting_ == 0) waited_ += std::chrono::steady_clock::now() - waiting_since_;
  }
  return cancelled_
             ? absl::CancelledError("the worker has stopped waiting for the step's parameters")
             : absl::OkStatus();
}

}  // namespace shoal
