#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace shoal {

class Device;
class GradientReducer;

// The position of one device among the devices whose gradients are added up.
struct SumRank {
  GradientReducer* reducer = nullptr;  // null: no sum over devices
  int rank = 0;                        // rank 0 gets the sum
  float share = 1;                     // above 0; the factor of the device's gradients
};

// Adds up the gradients of several devices on the devices, so that only one copies them to the
// host. Each device has a rank, from 0, and a thread that drives it.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  // Waits until all ranks have called it equally often. Each rank calls it before the first sum of
  // a run. A sum that waits on a device for another rank can block, in the driver, that rank's
  // preparations: loading kernels, recording them, taking memory. So every rank must finish those
  // before it calls Meet. Called on the rank's thread. kCancelled after Abort.
  virtual absl::Status Meet() = 0;
  // Submits a sum to kOut of this rank's `device`; it runs once all ranks have submitted theirs.
  // Then `gradients` on rank 0 hold the sum of all ranks' gradients, each times its share; on the
  // other ranks they are unchanged. They are float32 in the device's memory. All ranks must submit
  // the same sizes in the same order. Called on the rank's thread. kCancelled after Abort.
  virtual absl::Status Reduce(const SumRank& rank, Device& device, char* gradients,
                              int64_t size_bytes) = 0;
  // The state of the sums that this rank has submitted: kCancelled after Abort, or the reason why
  // they may never complete, once known. Call it while waiting for the sums and once more after
  // they complete: they are valid only if that last result is OK. Costs next to nothing. Called on
  // the rank's thread.
  virtual absl::Status Check(int rank) = 0;
  // Ends all waits for other ranks, with undefined sums, and rejects new ones. This keeps a rank
  // from waiting for one that has failed. May be called on any thread, and repeatedly.
  virtual void Abort() = 0;
};

}  // namespace shoal
