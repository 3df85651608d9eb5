#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "worker/compute/device/rendezvous.h"
#include "worker/compute/program/gradient_reducer.h"

namespace shoal {

// Sums over FakeDevices; a thread drives each device. The sum on rank 0 runs after those of the
// other ranks, which keep a copy of their memory at that time. Rejects sums until all ranks have
// met once. After an abort nothing waits, and the sums are undefined.
class FakeGradientReducer : public GradientReducer {
 public:
  explicit FakeGradientReducer(int ranks) : rendezvous_(ranks), given_(ranks) {}

  absl::Status Meet() override { return rendezvous_.Meet(); }
  absl::Status Reduce(const SumRank& rank, Device& device, char* gradients,
                      int64_t size_bytes) override;
  absl::Status Check(int rank) override;
  void Abort() override;

  // From now on, the sums of that rank wait until an abort.
  void HoldUp(int rank);
  // Makes that rank's link fail, which the rank notices in Check.
  void FailLink(int rank);
  int reduces();
  int meetings() const { return rendezvous_.meetings(); }

 private:
  bool MayRun(int rank, int number);
  absl::Status Run(int rank, float share, int number, std::span<float> values);

  Rendezvous rendezvous_;
  Mutex mutex_;
  std::vector<int> given_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::map<int, std::map<int, std::vector<float>>> parts_
      ABSL_GUARDED_BY(mutex_);  // by number, rank
  int reduces_ ABSL_GUARDED_BY(mutex_) = 0;
  int held_up_ ABSL_GUARDED_BY(mutex_) = -1;
  int failing_ ABSL_GUARDED_BY(mutex_) = -1;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace shoal
