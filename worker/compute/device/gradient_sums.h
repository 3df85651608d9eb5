#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace shoal {

class Device;
class GradientSums;

// The place of one device among those whose gradients are added up.
struct SumRank {
  GradientSums* sums = nullptr;  // null: each device's gradients are the caller's
  int rank = 0;                  // the sum comes to lie on rank 0
  float share = 1;               // above 0; what the device's gradients are multiplied by
};

// Adds up the gradients of several devices where they lie, so that one alone copies them to the
// host. Each device has a rank, from 0, and a thread that drives it.
class GradientSums {
 public:
  virtual ~GradientSums() = default;

  // Returns when all ranks have called it as often; each does before the first sum of a run. A sum
  // that waits on a device for another rank can hold up, in the driver, what that rank is still
  // preparing: loading kernels, recording them, taking memory. All of that comes before. Called on
  // the rank's thread. kCancelled after Abort.
  virtual absl::Status Meet() = 0;
  // Gives kOut of `device`, the one of this rank, a sum that runs when all ranks have given theirs:
  // then `gradients` on rank 0 are the sum of all ranks' gradients, each times its share, and on
  // the others what they were. float32, in the device's memory; all ranks give the same sizes in
  // the same order. Called on the rank's thread. kCancelled after Abort.
  virtual absl::Status Reduce(const SumRank& rank, Device& device, char* gradients,
                              int64_t size_bytes) = 0;
  // What became of the sums that this rank has given: kCancelled after Abort, or why they may never
  // end, where that has been found out. To be asked while they are waited for, and once more when
  // they have ended: only if it is OK then, they are sums. Costs next to nothing. Called on the
  // rank's thread.
  virtual absl::Status Check(int rank) = 0;
  // What waits for other ranks ends, whatever the sums are then, and no more is taken: so that no
  // rank waits for one that has failed. Any thread, more than once, too.
  virtual void Abort() = 0;
};

}  // namespace shoal
