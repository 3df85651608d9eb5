#pragma once

#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/program/arriving_parameters.h"
#include "worker/step/fragments.h"

namespace shoal {

// The chunks that a step still waits for when it begins. One thread reports arrivals. One or more
// other threads wait before they read a variable with a missing piece. Make one for each step.
class ParameterArrivals : public ArrivingParameters {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // `shard_map` must outlive this.
  ParameterArrivals(const ShardMap& shard_map, const std::vector<ChunkId>& missing);

  // Whether all chunks have arrived. Any thread.
  bool all_here() const;

  // --- For the thread that receives them ---

  // Reports that this thread has written the values of a missing chunk into the buffer.
  void Arrived(const ChunkId& id);
  // Cancels all current and future waits with kCancelled, because the other chunks will not arrive.
  void Cancel();
  // --- For the threads that compute ---

  absl::Status Await(int variable) override;
  // Awaits all variables.
  absl::Status AwaitAll();
  // The total time so far in which at least one thread waited.
  Duration waited() const {
    MutexLock lock(&mutex_);
    return waited_;
  }

 private:
  // Waits until `missing`, a number of chunks, is 0.
  absl::Status AwaitNone(const int& missing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardMap& shard_map_;
  mutable Mutex mutex_;
  CondVar arrived_;
  std::vector<int> of_variable_ ABSL_GUARDED_BY(mutex_);  // missing chunks, by variable
  int missing_ ABSL_GUARDED_BY(mutex_) = 0;               // chunks
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::chrono::steady_clock::time_point waiting_since_ ABSL_GUARDED_BY(mutex_);
  Duration waited_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace shoal
