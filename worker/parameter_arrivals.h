#pragma once

#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/arriving_parameters.h"
#include "worker/fragments.h"

namespace shoal {

// The chunks that a step still waits for when it begins: one thread says which have arrived, and
// others, one or more, wait where they read a variable of which a piece is missing. One for each
// step.
class ParameterArrivals : public ArrivingParameters {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // `shard_map` outlives this.
  ParameterArrivals(const ShardMap& shard_map, const std::vector<ChunkId>& missing);

  // All have arrived. For all threads.
  bool all_here() const;

  // --- For the thread that brings them ---

  // This missing chunk's values are in the buffer, and were written by this thread.
  void Arrived(const ChunkId& id);
  // The others do not come: whoever waits, or is about to, goes on with kCancelled.
  void GiveUp();
  // --- For those that compute ---

  absl::Status Await(int variable) override;
  // The same of all variables.
  absl::Status AwaitAll();
  // For how long somebody has waited so far.
  Duration waited() const {
    MutexLock lock(&mutex_);
    return waited_;
  }

 private:
  // `missing` of what is waited for, in chunks. Waits until none is.
  absl::Status AwaitNone(const int& missing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardMap& shard_map_;
  mutable Mutex mutex_;
  CondVar arrived_;
  std::vector<int> of_variable_ ABSL_GUARDED_BY(mutex_);  // missing chunks with a piece of it
  int missing_ ABSL_GUARDED_BY(mutex_) = 0;               // chunks
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::chrono::steady_clock::time_point waiting_since_ ABSL_GUARDED_BY(mutex_);
  Duration waited_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace shoal
